"""Task sources: the configuration's JSON that selects tasks, turned into tasks.

A list of sources yields their tasks one after the other.

    {"source_type": "demo_training", "category": "settings", "limit": 8, "seed": 1}
    {"source_type": "ids", "task_ids": ["train_02_enable_wifi"]}
    {"source_type": "file", "file_path": "tasks.jsonl"}
    {"source_type": "file", "file_path": "instructions.txt", "judge": "agent"}
    {"source_type": "custom", "custom_tasks": ["Open the Settings app"], "judge": "agent"}
    {"source_type": "custom", "custom_tasks": [
        {"task_id": "quiet", "description": "Mute the media.", "validation_query": "media_volume",
         "expected": "0", "setup": ["cmd media_session volume --stream 3 --set 7"]}]}
    {"source_type": "database", "training_name": "first", "difficulty": "easy"}
    {"source_type": "dbbench", "path": "data/dbbench", "split": "train", "skills": ["insert"]}
    {"source_type": "dbbench_generated", "num_samples": 220, "seed": 7, "split": "held_out"}
    {"source_type": "miniwob", "names": ["click-test-2", "enter-text"]}
    {"source_type": "text_to_sql", "path": "bird/dev_20240627", "split": "dev", "limit": 100}

Every mistake raises a UsageError that names the field.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeInt,
    ValidationError,
    model_validator,
)

from producer.agents import AGENTS
from producer.bounded_text import cut
from producer.errors import CuaTrainError, NotFoundError, UsageError, did_you_mean
from producer.field_errors import explain_mistake, explain_reason
from producer.task import Task
from producer.tasks.custom import CustomTask, Difficulty, Name, tasks_from_file, text_task_id
from producer.tasks.database import tasks_from_database
from producer.tasks.statements import definition_hash
from producer.validators.judges import AGENT, UNJUDGED, Judge
from schemas.bounds import check_key_text

logger = logging.getLogger(__name__)

OWN_SOURCES = {
    name: source for agent in AGENTS.values() for name, source in agent.task_sources.items()
}
"""Maps a source type to the source of an agent's own tasks."""
FIELD_OF_TYPE = {
    **{name: source.required for name, source in OWN_SOURCES.items() if source.required},
    "file": "file_path",
    "custom": "custom_tasks",
}
"""Maps a source type to the field that it requires."""
JUDGEABLE = ("custom", "file", "database")
"""Source types that accept a `judge`; their tasks can belong to any agent."""
FIELDS_OF_TYPE: dict[str, frozenset[str | None]] = {
    **{name: source.fields | {source.required} for name, source in OWN_SOURCES.items()},
    "file": frozenset({"file_path"}),
    "custom": frozenset({"custom_tasks"}),
    "database": frozenset({"training_name"}),
}
"""Maps a source type to the fields that are reserved for it and the other types that list them."""
FIELDS_OF_SOME_TYPES = sorted(name for name in frozenset().union(*FIELDS_OF_TYPE.values()) if name)
if TYPE_CHECKING:
    SourceType = str
else:
    SourceType = Literal[(*OWN_SOURCES, *JUDGEABLE)]
MAX_NAMED = 20
"""Maximum number of tasks that a message names."""


class Source(BaseModel):
    """One task source."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    source_type: SourceType
    """Where the tasks come from."""
    category: str | None = None
    """Selects only tasks of this category; None selects all."""
    difficulty: Difficulty | None = None
    """Selects only tasks of this difficulty; None selects all."""
    limit: int | None = Field(None, ge=1)
    """Maximum number of tasks, drawn with `seed` and kept in their original order; None for all."""
    seed: int = 42
    """Seed for drawing `limit` tasks and for generating the entries of `dbbench_generated`."""
    task_ids: tuple[Name, ...] | None = Field(None, min_length=1)
    """Ids of demo tasks. Only for `ids`."""
    names: tuple[Name, ...] | None = Field(None, min_length=1)
    """Names of pages (`miniwob`) or tasks (`desktop`); None selects those of `split`."""
    file_path: Path | None = None
    """A JSON array or JSON lines of tasks, as in custom_tasks, or a .txt file with one instruction
    per line. Only for `file`."""
    custom_tasks: tuple[CustomTask, ...] | None = Field(None, min_length=1)
    """The tasks themselves, or only their instructions. Only for `custom`."""
    training_name: str | None = None
    """Selects only tasks that this training's rollouts tried; None for any training. Only for
    `database`."""
    path: Path | None = None
    """Folder of a data set: in BIRD's or Spider's layout for `text_to_sql`, in LifelongAgentBench's
    for `dbbench`."""
    num_samples: int | None = Field(None, ge=1, le=100_000)
    """Number of entries to generate. Only for `dbbench_generated`."""
    split: Literal["train", "dev", "test", "held_out", "single"] | None = None
    """`text_to_sql`: `train` (default), `dev` or `test`. DB Bench: `train`, or `held_out` for
    entries about other tables; None for both. MiniWoB++: `train`, or `held_out` for other pages;
    None for both. `phone_goals`: `single`, `train` (default) or `held_out`."""
    skills: tuple[str, ...] | None = Field(None, min_length=1)
    """Selects only entries that need one of these skills; None for all. Only for DB Bench."""
    positions: tuple[NonNegativeInt, ...] | None = Field(None, min_length=1)
    """Selects only the entries at these positions in the data, counted from 0. Only for
    `dbbench`."""
    skip_invalid: bool | None = None
    """Skip questions whose database is missing or whose gold fails, instead of refusing the source.
    Only for `text_to_sql`."""
    judge: Judge | None = None
    """Judge of tasks without a validator: `agent`, `none`, or the URL of an OpenAI-compatible
    endpoint. Only for `custom`, `file` and `database`. None uses the configuration's `judge`."""
    judge_model: str | None = Field(None, min_length=1)
    """The model requested from the judge's endpoint; None if the endpoint lists only one."""

    @model_validator(mode="after")
    def _fields_fit_the_type(self) -> Self:
        required = FIELD_OF_TYPE.get(self.source_type)
        if required is not None and getattr(self, required) is None:
            message = f"{required}: required by source_type {self.source_type!r}"
            raise ValueError(message)
        for name in FIELDS_OF_SOME_TYPES:
            types = [kind for kind, fields in FIELDS_OF_TYPE.items() if name in fields]
            if getattr(self, name) is not None and self.source_type not in types:
                of_types = " or ".join(map(repr, types))
                message = f"{name}: only for source_type {of_types}, not {self.source_type!r}"
                raise ValueError(message)
        own = OWN_SOURCES.get(self.source_type)
        splits = own.splits if own is not None else ()
        if self.split is not None and self.split not in splits:
            of = f"use one of {', '.join(splits)}" if splits else "it has none"
            message = f"split: {self.split!r} is no split of source_type {self.source_type!r}; {of}"
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


class DefaultJudge(NamedTuple):
    """The judge of tasks without a validator if their source names none."""

    judge: str | None = None
    """See `Source.judge`."""
    model: str | None = None
    """See `Source.judge_model`."""


NO_JUDGE = DefaultJudge()
MAX_SHOWN = 60
"""Maximum characters of a task_id in a message."""
CheckTask = Callable[[Task], None]
"""Raises ValueError for a task that cannot be set up; the message begins with the field, if one is
to blame."""


def load_tasks(
    source: JsonValue,
    *,
    judged_only: bool = True,
    allow_unjudged: bool = False,
    default: DefaultJudge = NO_JUDGE,
    field: str = "tasks",
    is_check: bool = False,
    check: CheckTask | None = None,
) -> list[Task]:
    """Load the tasks of a source or of a list of sources, in order.

    With `judged_only`, demo tasks without a validator are left out. Naming one, or giving a custom
    task without a validator or judge, is an error, because it could never succeed. With
    `allow_unjudged`, tasks whose judge is `none` are kept all the same. A task that is given twice
    is kept once, which is logged unless `is_check`. `check` checks that the environment can set a
    task up. Raises UsageError that begins with `field`, and NotFoundError and UnreachableError for
    a database.
    """
    sources = source if isinstance(source, list) else [source]
    tasks = []
    for position, one in enumerate(sources):
        where = f"{field}[{position}]" if isinstance(source, list) else field
        parsed = _parse_source(one, where)
        found = _load_one(
            parsed, where, default, judged_only=judged_only, allow_unjudged=allow_unjudged
        )
        _check(found, parsed, where, _check_id)
        if check is not None:
            _check(found, parsed, where, check)
        tasks += found
    if not tasks:
        message = (
            f'{field}: no source given; give at least one, such as {{"source_type": "demo_all"}}'
        )
        raise UsageError(message)
    kept = _without_repeats(tasks, field)
    if len(kept) < len(tasks) and not is_check:
        logger.info(
            "%s: %d tasks are given again; each is kept once", field, len(tasks) - len(kept)
        )
    return kept


def _check(tasks: Sequence[Task], source: Source, where: str, check: CheckTask) -> None:
    """Check every task. Raises UsageError that names the place of the first task that fails."""
    for task in tasks:
        try:
            check(task)
        except ValueError as error:
            place = f"{where}: task {cut(task.task_id, MAX_SHOWN)!r}"
            if source.source_type in {"custom", "file"}:
                entries = [candidate.task_id for candidate in _candidates(source, where)]
                file = "" if source.file_path is None else f": {source.file_path}"
                field = FIELD_OF_TYPE[source.source_type]
                place = f"{where}.{field}{file}[{entries.index(task.task_id)}]"
            raise UsageError(place + explain_reason(str(error))) from None


def _check_id(task: Task) -> None:
    """Raise ValueError for an id that the tables cannot store, although the log could."""
    check_key_text("task_id", task.task_id)


def _without_repeats(tasks: Sequence[Task], field: str) -> list[Task]:
    """Drop repeated definitions. Raises UsageError for a task_id with two definitions."""
    kept: dict[str, Task] = {}
    for task in tasks:
        known = kept.setdefault(task.task_id, task)
        if known is not task and definition_hash(known) != definition_hash(task):
            message = (
                f"{field}: the task_id {task.task_id!r} has two different definitions; give one of"
                " them another task_id"
            )
            raise UsageError(message)
    return list(kept.values())


def _parse_source(source: JsonValue, where: str) -> Source:
    if not isinstance(source, dict):
        shown = json.dumps(source, ensure_ascii=False)[:80]
        message = (
            f'{where}: a source is an object such as {{"source_type": "demo_all"}}, not {shown}'
        )
        raise UsageError(message)
    try:
        return Source.model_validate_json(json.dumps(source))
    except ValidationError as error:
        raise UsageError(where + explain_mistake(error, Source)) from error


def _load_one(
    source: Source, where: str, default: DefaultJudge, *, judged_only: bool, allow_unjudged: bool
) -> list[Task]:
    candidates = _candidates(source, where)
    judge = None
    if source.source_type in JUDGEABLE:
        judge = source.judge or default.judge
        model = source.judge_model if source.judge else default.model
        candidates = [_with_judge(task, judge, model) for task in candidates]
    keeps_unjudged = not judged_only or (allow_unjudged and judge == UNJUDGED)
    field = FIELD_OF_TYPE.get(source.source_type)
    unjudged = [task.task_id for task in candidates if not task.is_judged]
    if unjudged and field is not None and not keeps_unjudged:
        _refuse_unjudged(f"{where}.{field}", unjudged, judge)
    tasks = [
        task
        for task in candidates
        if (task.is_judged or keeps_unjudged)
        and source.category in {None, task.category}
        and source.difficulty in {None, task.difficulty}
    ]
    if not tasks:
        raise _empty(source, candidates, where)
    if source.limit is None or source.limit >= len(tasks):
        return tasks
    chosen = sorted(Random(source.seed).sample(range(len(tasks)), source.limit))  # noqa: S311  # not for secrets
    return [tasks[index] for index in chosen]


def _with_judge(task: Task, judge: str | None, model: str | None) -> Task:
    """The task, judged by `judge` if no device query or environment judges it.

    With `judge` None, the judge is as recorded, or the agent's own report for a task that is only
    an instruction.
    """
    if task.validation_query is not None or task.entry is not None:
        return task
    if judge is None:
        # As in the CUA recipe, the success of a plain instruction is what the agent reports.
        is_text = task.judge is None and task.task_id == text_task_id(task.description)
        return replace(task, judge=AGENT) if is_text else task
    if judge in {AGENT, UNJUDGED}:
        return replace(task, judge=AGENT if judge == AGENT else None, judge_model=None)
    return replace(task, judge=judge, judge_model=model)


def _refuse_unjudged(where: str, task_ids: Sequence[str], judge: str | None) -> NoReturn:
    shown = ", ".join(task_ids[:MAX_NAMED]) + (" and more" if len(task_ids) > MAX_NAMED else "")
    if judge == UNJUDGED:
        message = (
            f"{where}: these tasks are never judged (judge none), so that no reward can be learnt"
            f" from: {shown}; use another judge, or give them a validation_query"
        )
        raise UsageError(message)
    message = f"{where}: these tasks have no validator: {shown}"
    ways = (
        "leave them out",
        "give custom tasks a validation_query",
        "name who judges them: --judge agent or --judge URL",
    )
    raise UsageError(message, ways=ways)


def _empty(source: Source, candidates: Sequence[Task], where: str) -> CuaTrainError:
    """The error for a source that selects nothing."""
    filters = [
        f"{name} {value!r}"
        for name, value in (("category", source.category), ("difficulty", source.difficulty))
        if value is not None
    ]
    if source.source_type == "database":
        of = "" if source.training_name is None else f" of training {source.training_name!r}"
        message = (
            f"{where}: no recorded task{of} that can be judged"
            f"{' has ' + ' and '.join(filters) if filters else ''}; `cua-project tasks` lists what"
            " is recorded, and `cua-project run --once` records what the log has"
        )
        return NotFoundError(message)
    categories = sorted({task.category for task in candidates if task.category})
    hint = did_you_mean(source.category, categories) if source.category else ""
    known = (
        f" The {'demo ' if source.source_type.startswith(('demo', 'ids')) else ''}tasks' categories"
        f" are {', '.join(categories)}; `cua-train tasks list` shows the demo tasks"
        if categories
        else " These tasks have no category"
    )
    return UsageError(f"{where}: no task has {' and '.join(filters)}.{hint}{known}")


def _candidates(source: Source, where: str) -> Sequence[Task]:
    if (own := OWN_SOURCES.get(source.source_type)) is not None:
        return own.load(source, where)
    if source.source_type == "custom":
        return [task.task("custom") for task in source.custom_tasks or ()]
    if source.source_type == "file":
        return tasks_from_file(source.file_path or Path(), f"{where}.file_path")
    return tasks_from_database(
        where,
        category=source.category,
        difficulty=source.difficulty,
        training_name=source.training_name,
    )


def source_name(source: JsonValue) -> str:
    """A short name of a task source: `demo_eval`, `18 task ids`, `tasks.jsonl`."""
    if isinstance(source, list):
        return " + ".join(source_name(item) for item in source)
    if not isinstance(source, dict):
        return "default tasks"
    type_ = str(source.get("source_type"))
    split = f", {source['split']}" if source.get("split") else ""
    return f"{_counted(type_, source)}{split}"


def _counted(type_: str, source: Mapping[str, JsonValue]) -> str:
    for field, noun in (("task_ids", "task id"), ("custom_tasks", "custom task")):
        given = source.get(field)
        if isinstance(given, list | tuple):
            return f"{len(given)} {noun}{'s' * (len(given) != 1)}"
    for field in ("file_path", "path"):
        if source.get(field) is not None:
            return Path(str(source[field])).name
    return type_
