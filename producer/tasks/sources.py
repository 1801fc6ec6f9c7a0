"""Task sources: the configuration's JSON that selects tasks, turned into tasks.

A list of sources gives their tasks one after the other.

    {"source_type": "demo_training", "category": "settings", "limit": 8, "seed": 1}
    {"source_type": "ids", "task_ids": ["train_02_enable_wifi"]}
    {"source_type": "file", "file_path": "tasks.jsonl"}
    {"source_type": "custom", "custom_tasks": [
        {"task_id": "quiet", "description": "Mute the media.", "validation_query": "media_volume",
         "expected": "0", "setup": ["cmd media_session volume --stream 3 --set 7"]}]}

Every mistake is a UsageError that names the field.
"""

import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from producer.errors import UsageError, did_you_mean
from producer.task import Split, Task
from producer.tasks.demo import demo_tasks
from producer.tasks.mistakes import explain_mistake
from producer.validators.queries import describe_unknown_query, find_query

SourceType = Literal["demo_training", "demo_eval", "demo_all", "ids", "file", "custom"]
Difficulty = Literal["easy", "medium", "hard"]
DEFAULT_MAX_STEPS = 20
"""Turns of a custom task without `max_steps`; the recipe's max_turns."""
FIELD_OF_TYPE = {"ids": "task_ids", "file": "file_path", "custom": "custom_tasks"}
"""Source type -> the field that it requires and that no other type accepts."""


def _check_name(name: str) -> str:
    """NFC-normalized, so that names that look the same are the same. Any script is accepted."""
    name = unicodedata.normalize("NFC", name)
    if not name.strip():
        message = "must not be empty"
        raise ValueError(message)
    if any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in name):
        message = f"must not contain control characters or line breaks, but is {name!r}"
        raise ValueError(message)
    return name


Name = Annotated[str, AfterValidator(_check_name)]
"""One line of text in any script."""


class CustomTask(BaseModel):
    """A task as a user writes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    task_id: Name
    """Identifies the task in reports and tables."""
    description: str = Field(min_length=1)
    """The instruction."""
    name: Name | None = None
    """Title for people; None: the task_id."""
    difficulty: Difficulty | None = None
    """For filters; None: unrated."""
    category: str | None = None
    """For filters; None: none."""
    max_steps: int = Field(DEFAULT_MAX_STEPS, ge=1, le=1_000_000)
    """Turns the agent may take."""
    validation_query: str | None = None
    """Device query (`wifi_enabled`, `setting_global/wifi_on`); None: it cannot be judged."""
    expected: str | int | bool | None = None
    """The answer that solves the task; numbers and booleans are compared as text."""
    validation_config: dict[str, str] = {}
    """Parameters of the query."""
    setup: tuple[str, ...] = ()
    """Shell commands run before the episode."""
    tags: tuple[str, ...] = ()
    """Recorded with the task."""
    app_name: str | None = None
    """Recorded with the task; None: no particular app."""
    split: Split = "train"
    """Whether the task is for training or evaluation."""

    @model_validator(mode="after")
    def _validator_is_complete(self) -> Self:
        if self.validation_query is not None and find_query(self.validation_query) is None:
            message = f"validation_query: {describe_unknown_query(self.validation_query)}"
            raise ValueError(message)
        if self.validation_query is not None and self.expected is None:
            message = (
                "expected: required with validation_query; give the answer that solves the task"
            )
            raise ValueError(message)
        if self.validation_query is None and self.expected is not None:
            message = "expected: needs a validation_query to compare with"
            raise ValueError(message)
        return self

    def task(self, source_type: str) -> Task:
        """The Task."""
        return Task(
            task_id=self.task_id,
            name=self.name or self.task_id,
            description=self.description,
            difficulty=self.difficulty,
            category=self.category,
            max_steps=self.max_steps,
            validation_query=self.validation_query,
            expected_result=None if self.expected is None else str(self.expected),
            setup=self.setup,
            tags=self.tags,
            app_name=self.app_name,
            source_type=source_type,
            split=self.split,
            validation_config=self.validation_config,
        )


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
    """For drawing `limit` tasks."""
    task_ids: tuple[Name, ...] | None = Field(None, min_length=1)
    """Ids of demo tasks; for `ids` only."""
    file_path: Path | None = None
    """A JSON array or JSON lines of tasks, as in custom_tasks; for `file` only."""
    custom_tasks: tuple[CustomTask, ...] | None = Field(None, min_length=1)
    """The tasks themselves; for `custom` only."""

    @model_validator(mode="after")
    def _fields_fit_the_type(self) -> Self:
        for source_type, name in FIELD_OF_TYPE.items():
            is_given = getattr(self, name) is not None
            if is_given and self.source_type != source_type:
                message = f"{name}: only for source_type {source_type!r}, not {self.source_type!r}"
                raise ValueError(message)
            if not is_given and self.source_type == source_type:
                message = f"{name}: required by source_type {source_type!r}"
                raise ValueError(message)
        return self


def load_tasks(source: JsonValue, *, judged_only: bool = True) -> list[Task]:
    """The tasks of a source or of a list of sources, in order. UsageError.

    With `judged_only`, demo tasks without a validator are left out; naming one, or giving a custom
    task without a validator, is an error, because it could never succeed.
    """
    sources = source if isinstance(source, list) else [source]
    tasks = []
    for position, one in enumerate(sources):
        where = f"tasks[{position}]" if isinstance(source, list) else "tasks"
        tasks += _load_one(_parse_source(one, where), where, judged_only=judged_only)
    if not tasks:
        message = 'tasks: no source given; give at least one, such as {"source_type": "demo_all"}'
        raise UsageError(message)
    return tasks


def _parse_source(source: JsonValue, where: str) -> Source:
    if not isinstance(source, dict):
        shown = json.dumps(source, ensure_ascii=False)[:80]
        message = (
            f'{where}: a source is an object such as {{"source_type": "demo_all"}}, not {shown}'
        )
        raise UsageError(message)
    if source.get("source_type") == "database":
        types = ", ".join(get_args(SourceType))
        message = f"{where}.source_type: 'database' is not implemented yet; use one of {types}"
        raise UsageError(message)
    try:
        return Source.model_validate_json(json.dumps(source))
    except ValidationError as error:
        raise UsageError(where + explain_mistake(error, Source)) from error


def _load_one(source: Source, where: str, *, judged_only: bool) -> list[Task]:
    tasks = _candidates(source, where)
    field = FIELD_OF_TYPE.get(source.source_type)
    unjudged = [task.task_id for task in tasks if not task.is_judged]
    if judged_only and field is not None and unjudged:
        message = (
            f"{where}.{field}: these tasks have no validator: {', '.join(unjudged)};"
            " leave them out, or give custom tasks a validation_query"
        )
        raise UsageError(message)
    tasks = [
        task
        for task in tasks
        if (task.is_judged or not judged_only)
        and source.category in {None, task.category}
        and source.difficulty in {None, task.difficulty}
    ]
    if not tasks:
        message = f"{where}: {_describe_empty_filter(source)}"
        raise UsageError(message)
    if source.limit is None or source.limit >= len(tasks):
        return tasks
    chosen = sorted(Random(source.seed).sample(range(len(tasks)), source.limit))  # noqa: S311  # not for secrets
    return [tasks[index] for index in chosen]


def _describe_empty_filter(source: Source) -> str:
    filters = [
        f"{name} {value!r}"
        for name, value in (("category", source.category), ("difficulty", source.difficulty))
        if value is not None
    ]
    categories = sorted({task.category for task in demo_tasks() if task.category})
    hint = did_you_mean(source.category, categories) if source.category else ""
    return (
        f"no task has {' and '.join(filters)}.{hint} The demo tasks' categories are"
        f" {', '.join(categories)}; `cua-train tasks list` shows them"
    )


def _candidates(source: Source, where: str) -> Sequence[Task]:
    match source.source_type:
        case "demo_training":
            return [task for task in demo_tasks() if task.split == "train"]
        case "demo_eval":
            return [task for task in demo_tasks() if task.split == "eval"]
        case "demo_all":
            return demo_tasks()
        case "ids":
            return _by_ids(source.task_ids or (), where)
        case "custom":
            return [task.task("custom") for task in source.custom_tasks or ()]
        case "file":
            return _from_file(source.file_path or Path(), where)


def _by_ids(task_ids: Sequence[str], where: str) -> list[Task]:
    known = {task.task_id: task for task in demo_tasks()}
    unknown = [task_id for task_id in task_ids if task_id not in known]
    if unknown:
        names = ", ".join(map(repr, unknown))
        message = (
            f"{where}.task_ids: no demo task is called {names}."
            f"{did_you_mean(unknown[0], known)} `cua-train tasks list` shows them all"
        )
        raise UsageError(message)
    return [known[task_id] for task_id in task_ids]


def _from_file(path: Path, where: str) -> list[Task]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{where}.file_path: {path} is not UTF-8 text ({error})"
        raise UsageError(message) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        message = f"{where}.file_path: cannot read {str(path)!r}: {reason}"
        raise UsageError(message) from error
    try:
        # Not splitlines(): JSON strings may contain U+2028 and U+0085.
        rows = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else [json.loads(line) for line in text.split("\n") if line.strip()]
        )
    except (ValueError, RecursionError) as error:
        message = f"{where}.file_path: {path} is neither a JSON array nor JSON lines: {error}"
        raise UsageError(message) from error
    if not rows:
        message = f"{where}.file_path: {path} contains no task; give at least one task"
        raise UsageError(message)
    tasks = []
    for number, row in enumerate(rows):
        try:
            tasks.append(CustomTask.model_validate_json(json.dumps(row)).task("file"))
        except ValidationError as error:
            message = f"{where}.file_path: {path}[{number}]{explain_mistake(error, CustomTask)}"
            raise UsageError(message) from error
    return tasks
