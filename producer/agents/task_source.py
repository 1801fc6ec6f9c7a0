"""A source of tasks, which the configuration selects by `source_type`.

Each type is a subclass with the fields of its own. Agents declare those of their tasks; the ones
that any agent can use are in `producer.tasks.sources`.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal, Self, get_args

from pydantic import ConfigDict, Field, JsonValue, model_validator

from producer.numbers import UserFields
from producer.task import Difficulty, Name, Task


class TaskSource(UserFields):
    """One task source. A subclass narrows `source_type` to a literal."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    source_type: str
    """Where the tasks come from."""
    category: str | None = None
    """Selects only tasks of this category; None selects all."""
    difficulty: Difficulty | None = None
    """Selects only tasks of this difficulty; None selects all."""
    limit: int | None = Field(None, ge=1)
    """Maximum number of tasks, drawn with `seed` and kept in their original order; None for all."""
    seed: int = 42
    """Seed for drawing `limit` tasks and for generating the entries of `dbbench_generated`."""

    @abstractmethod
    def load(self, where: str) -> Sequence[Task]:
        """The tasks, before `category`, `difficulty` and `limit`.

        Raises UsageError, which begins with `where`, NotFoundError and UnreachableError.
        """

    @classmethod
    def held_out(cls, given: dict[str, JsonValue]) -> JsonValue:  # noqa: ARG003  # used by sources that are split
        """The source of tasks held out from those of `given`; None if there is none."""
        return None

    @classmethod
    def required_field(cls) -> str | None:
        """The field that cannot be left out; None if there is none."""
        fields = {name: field for name, field in cls.model_fields.items() if name != "source_type"}
        return next((name for name, field in fields.items() if field.is_required()), None)


class SplitSource(TaskSource):
    """A source whose tasks are split into those for training and held-out ones."""

    split: Literal["train", "held_out"] | None = None
    """None selects both."""

    @classmethod
    def held_out(cls, given: dict[str, JsonValue]) -> JsonValue:
        """The same source with the other split."""
        return {**given, "split": "held_out"} if given.get("split") == "train" else None


class NamedSource(SplitSource):
    """A split source whose tasks can also be selected by name."""

    names: tuple[Name, ...] | None = Field(None, min_length=1)
    """Names of the tasks; None selects those of `split`."""

    @model_validator(mode="after")
    def _names_or_split(self) -> Self:
        if self.names is not None and self.split is not None:
            message = "give names or a split, not both"
            raise ValueError(message)
        return self


def by_type(*sources: type[TaskSource]) -> dict[str, type[TaskSource]]:
    """Maps each value of `source_type` to its source."""
    return {
        name: source
        for source in sources
        for name in get_args(source.model_fields["source_type"].annotation)
    }
