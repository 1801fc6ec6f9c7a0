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
from typing import Literal, NamedTuple, NoReturn, Self

from pydantic import Field, JsonValue, ValidationError, model_validator

from producer.agents import AGENTS
from producer.agents.task_source import TaskSource, by_type
from producer.bounded_text import cut
from producer.errors import CuaTrainError, NotFoundError, UsageError
from producer.field_errors import explain_mistake, explain_reason
from producer.task import Task
from producer.tasks.custom import CustomTask, tasks_from_file, text_task_id
from producer.tasks.database import tasks_from_database
from producer.tasks.statements import definition_hash
from producer.validators.judges import AGENT, UNJUDGED, Judge
from schemas.advice import did_you_mean
from schemas.bounds import check_key_text

logger = logging.getLogger(__name__)

MAX_NAMED = 20
"""Maximum number of tasks that a message names."""


class JudgedSource(TaskSource):
    """A source whose tasks can belong to any agent, and may need a judge."""

    judge: Judge | None = None
    """Judge of tasks without a validator: `agent`, `none`, or the URL of an OpenAI-compatible
    endpoint. None uses the configuration's `judge`."""
    judge_model: str | None = Field(None, min_length=1)
    """The model requested from the judge's endpoint; None if the endpoint lists only one."""

    @model_validator(mode="after")
    def _model_fits_the_judge(self) -> Self:
        if self.judge_model is not None and self.judge in {None, AGENT, UNJUDGED}:
            message = "judge_model: only with a judge that is the URL of an endpoint"
            raise ValueError(message)
        return self


class CustomSource(JudgedSource):
    """Tasks that are given in the source."""

    source_type: Literal["custom"]
    custom_tasks: tuple[CustomTask, ...] = Field(min_length=1)
    """The tasks themselves, or only their instructions."""

    def load(self, where: str) -> Sequence[Task]:  # noqa: ARG002  # cannot fail
        """The tasks in their order."""
        return [task.task("custom") for task in self.custom_tasks]


class FileSource(JudgedSource):
    """Tasks of a file."""

    source_type: Literal["file"]
    file_path: Path
    """A JSON array or JSON lines of tasks, as in custom_tasks, or a .txt file with one instruction
    per line."""

    def load(self, where: str) -> Sequence[Task]:
        """The tasks in the order of the file."""
        return tasks_from_file(self.file_path, f"{where}.file_path")


class DatabaseSource(JudgedSource):
    """Tasks that the database has."""

    source_type: Literal["database"]
    training_name: str | None = None
    """Selects only tasks that this training's rollouts tried; None for any training."""

    def load(self, where: str) -> Sequence[Task]:
        """The recorded tasks of the category and difficulty."""
        return tasks_from_database(
            where,
            category=self.category,
            difficulty=self.difficulty,
            training_name=self.training_name,
        )


SOURCES = {
    **{name: source for agent in AGENTS.values() for name, source in agent.task_sources.items()},
    **by_type(CustomSource, FileSource, DatabaseSource),
}
"""Maps each `source_type` to its source."""


class DefaultJudge(NamedTuple):
    """The judge of tasks without a validator if their source names none."""

    judge: str | None = None
    """See `JudgedSource.judge`."""
    model: str | None = None
    """See `JudgedSource.judge_model`."""


NO_JUDGE = DefaultJudge()
MAX_SHOWN = 60
"""Maximum characters of a name in a message."""
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
        logger.info("%s: %d repeated tasks are left out", field, len(tasks) - len(kept))
    return kept


def _check(tasks: Sequence[Task], source: TaskSource, where: str, check: CheckTask) -> None:
    """Check every task. Raises UsageError that names the place of the first task that fails."""
    for task in tasks:
        try:
            check(task)
        except ValueError as error:
            place = f"{where}: task {cut(task.task_id, MAX_SHOWN)!r}"
            if isinstance(source, CustomSource | FileSource):
                entries = [candidate.task_id for candidate in source.load(where)]
                file = f": {source.file_path}" if isinstance(source, FileSource) else ""
                field = source.required_field()
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


def _parse_source(given: JsonValue, where: str) -> TaskSource:
    if not isinstance(given, dict):
        shown = json.dumps(given, ensure_ascii=False)[:80]
        message = (
            f'{where}: a source is an object such as {{"source_type": "demo_all"}}, not {shown}'
        )
        raise UsageError(message)
    kind = str(given.get("source_type"))
    if kind not in SOURCES:
        wrong = f"unknown value {cut(kind, MAX_SHOWN)!r}.{did_you_mean(kind, SOURCES)}"
        message = (
            f"{where}.source_type: {wrong if 'source_type' in given else 'required.'}"
            f" Use one of {', '.join(SOURCES)}"
        )
        raise UsageError(message)
    source = SOURCES[kind]
    # A field that is null is the same as one that is left out.
    fields = {name: value for name, value in given.items() if value is not None}
    try:
        return source.model_validate_json(json.dumps(fields))
    except ValidationError as error:
        message = where + explain_mistake(error, source)
        first = error.errors()[0]
        if first["type"] == "missing" and len(first["loc"]) == 1:
            message += f" by source_type {kind!r}"
        raise UsageError(message) from error


def _load_one(
    source: TaskSource,
    where: str,
    default: DefaultJudge,
    *,
    judged_only: bool,
    allow_unjudged: bool,
) -> list[Task]:
    candidates = source.load(where)
    judge = None
    if isinstance(source, JudgedSource):
        judge = source.judge or default.judge
        model = source.judge_model if source.judge else default.model
        candidates = [_with_judge(task, judge, model) for task in candidates]
    keeps_unjudged = not judged_only or (allow_unjudged and judge == UNJUDGED)
    field = source.required_field()
    unjudged = list(dict.fromkeys(task.task_id for task in candidates if not task.is_judged))
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


def _empty(source: TaskSource, candidates: Sequence[Task], where: str) -> CuaTrainError:
    """The error for a source that selects nothing."""
    filters = [
        f"{name} {value!r}"
        for name, value in (("category", source.category), ("difficulty", source.difficulty))
        if value is not None
    ]
    if isinstance(source, DatabaseSource):
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
