"""One task source: the fields of the configuration's JSON."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, model_validator

from producer.agents import AGENTS
from producer.tasks.custom import CustomTask, Difficulty, Name
from producer.validators.judges import AGENT, UNJUDGED, Judge

OWN_SOURCES = {
    name: source for agent in AGENTS.values() for name, source in agent.task_sources.items()
}
"""Source type -> the source of an agent's own tasks."""
FIELD_OF_TYPE = {
    **{name: source.required for name, source in OWN_SOURCES.items() if source.required},
    "file": "file_path",
    "custom": "custom_tasks",
}
"""Source type -> the field that it requires and that types without it refuse."""
JUDGEABLE = ("custom", "file", "database")
"""Source types whose tasks a judge may be named for: those of any agent."""
OPTIONAL_FIELDS = sorted({field for source in OWN_SOURCES.values() for field in source.fields})
if TYPE_CHECKING:
    SourceType = str
else:
    SourceType = Literal[(*OWN_SOURCES, *JUDGEABLE)]


class Source(BaseModel):
    """One task source."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source_type: SourceType
    """Where the tasks come from."""
    category: str | None = None
    """Only tasks of this category; None: all."""
    difficulty: Difficulty | None = None
    """Only tasks of this difficulty; None: all."""
    limit: int | None = Field(None, ge=1)
    """At most this many, drawn with `seed`, in their original order; None: all."""
    seed: int = 42
    """For drawing `limit` tasks, and of the entries of `dbbench_generated`."""
    task_ids: tuple[Name, ...] | None = Field(None, min_length=1)
    """Ids of demo tasks; for `ids` only."""
    file_path: Path | None = None
    """A JSON array or JSON lines of tasks, as in custom_tasks, or a .txt file with an instruction a
    line; for `file` only."""
    custom_tasks: tuple[CustomTask, ...] | None = Field(None, min_length=1)
    """The tasks themselves, or their instructions alone; for `custom` only."""
    training_name: str | None = None
    """Only tasks that this training's rollouts tried; None: any training's; for `database` only."""
    path: Path | None = None
    """Folder of a data set: in BIRD's or Spider's layout for `text_to_sql`, in LifelongAgentBench's
    for `dbbench`."""
    num_samples: int | None = Field(None, ge=1, le=100_000)
    """How many entries are generated; for `dbbench_generated` only."""
    split: Literal["train", "dev", "test", "held_out"] | None = None
    """Of `text_to_sql`: `train`, `dev` or `test`; None: `train`. Of DB Bench: `train`, or
    `held_out`, entries about other tables; None: both."""
    skills: tuple[str, ...] | None = Field(None, min_length=1)
    """Only entries that need one of these; None: all; for DB Bench only."""
    positions: tuple[NonNegativeInt, ...] | None = Field(None, min_length=1)
    """Only the entries at these places of the data, 0 first; for `dbbench` only."""
    judge: Judge | None = None
    """Who judges the tasks without a validator: `agent`, `none`, or the URL of an OpenAI-compatible
    endpoint; for `custom`, `file` and `database` only. None: the configuration's `judge`."""
    judge_model: str | None = Field(None, min_length=1)
    """The model that the endpoint is asked for; None: the only one that it lists."""

    @model_validator(mode="after")
    def _fields_fit_the_type(self) -> Self:
        required = FIELD_OF_TYPE.get(self.source_type)
        for name in dict.fromkeys(FIELD_OF_TYPE.values()):
            is_given = getattr(self, name) is not None
            if is_given and name != required:
                types = " or ".join(
                    repr(of) for of, field in FIELD_OF_TYPE.items() if field == name
                )
                message = f"{name}: only for source_type {types}, not {self.source_type!r}"
                raise ValueError(message)
            if not is_given and name == required:
                message = f"{name}: required by source_type {self.source_type!r}"
                raise ValueError(message)
        if self.training_name is not None and self.source_type != "database":
            message = f"training_name: only for source_type 'database', not {self.source_type!r}"
            raise ValueError(message)
        own = OWN_SOURCES.get(self.source_type)
        splits = own.splits if own is not None else ()
        if self.split is not None and self.split not in splits:
            of = f"use one of {', '.join(splits)}" if splits else "it has none"
            message = f"split: {self.split!r} is no split of source_type {self.source_type!r}; {of}"
            raise ValueError(message)
        for name in OPTIONAL_FIELDS:
            having = [kind for kind, source in OWN_SOURCES.items() if name in source.fields]
            if getattr(self, name) is not None and self.source_type not in having:
                of_types = " or ".join(map(repr, having))
                message = f"{name}: only for source_type {of_types}, not {self.source_type!r}"
                raise ValueError(message)
        if self.judge is not None and self.source_type not in JUDGEABLE:
            message = (
                f"judge: only for source_type {', '.join(JUDGEABLE)}; the demo tasks have their own"
                " validators"
            )
            raise ValueError(message)
        if self.judge_model is not None and self.judge in {None, AGENT, UNJUDGED}:
            message = "judge_model: only with a judge that is the URL of an endpoint"
            raise ValueError(message)
        return self
