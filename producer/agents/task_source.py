"""A source of an agent's own tasks, as the configuration names it by `source_type`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pydantic import JsonValue

from producer.task import Task

if TYPE_CHECKING:
    from producer.tasks.sources import Source


SourceFields: TypeAlias = "Source"
"""The source, whose fields agents read."""


@dataclass(frozen=True, slots=True)
class TaskSource:
    """One `source_type`."""

    load: Callable[[SourceFields, str], Sequence[Task]]
    """(source, its place in the configuration) -> its tasks. UsageError, NotFoundError."""
    required: str | None = None
    """The field that this type must have, and that types without it refuse."""
    splits: tuple[str, ...] = ()
    """What `split` may be; empty: there is none."""
    fields: frozenset[str] = frozenset()
    """Optional fields that only this and other types which name them have."""
    held_out: Callable[[dict[str, JsonValue]], JsonValue] = lambda _source: None
    """A source of training tasks -> the source of tasks that are held out from it; None: none."""
    is_tested: bool = False
    """Whether its tasks are ours and known to be sound, so that a run need not try each."""
