"""A source of an agent's own tasks, which the configuration selects by `source_type`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pydantic import JsonValue

from producer.task import Task

if TYPE_CHECKING:
    from producer.tasks.sources import Source


SourceFields: TypeAlias = "Source"
"""The configured source. Agents read its fields."""


@dataclass(frozen=True, slots=True)
class TaskSource:
    """The tasks of one `source_type`."""

    load: Callable[[SourceFields, str], Sequence[Task]]
    """Loads the tasks, given the source and its place in the configuration. Raises UsageError,
    NotFoundError."""
    required: str | None = None
    """A field that this type requires and that types without it reject."""
    splits: tuple[str, ...] = ()
    """Allowed values of `split`; empty if this type has no splits."""
    fields: frozenset[str] = frozenset()
    """Optional fields that are allowed only for this type and other types that list them."""
    held_out: Callable[[dict[str, JsonValue]], JsonValue] = lambda _source: None
    """Maps a source of training tasks to a source of tasks held out from it; None if there is
    none."""
    is_tested: bool = False
    """Whether the tasks are ours and known to be sound, so that a run need not try each one."""
