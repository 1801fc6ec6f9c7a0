"""Task sources: JSON that says which tasks a run uses, turned into tasks.

A list of sources is their tasks one after the other.

    {"source_type": "demo_training", "category": "settings", "limit": 8, "seed": 1}
    {"source_type": "ids", "task_ids": ["train_02_enable_wifi"]}
    {"source_type": "file", "file_path": "tasks.jsonl"}
    {"source_type": "custom", "custom_tasks": [{"task_id": "quiet", "description": "Mute the media.", "validation_query": "media_volume",
                                                "expected": "0", "setup": ["cmd media_session volume --stream 3 --set 7"]}]}

Whatever is wrong is a UsageError that names the field.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from producer.errors import UsageError
from producer.task import Split, Task
from producer.tasks.demo import demo_tasks
from producer.validators.queries import QUERIES, find_query

SourceType = Literal["demo_training", "demo_eval", "demo_all", "ids", "file", "custom", "database"]
Difficulty = Literal["easy", "medium", "hard"]
DEFAULT_MAX_STEPS = 20
"""Turns of a custom task that says nothing; the recipe's max_turns."""
NEEDED = {"ids": "task_ids", "file": "file_path", "custom": "custom_tasks"}
"""Source type -> the field it cannot do without, and which the others cannot have."""


class CustomTask(BaseModel):
    """A task as a user writes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    task_id: str = Field(min_length=1)
    description: str = Field(min_length=1)
    """The instruction."""
    name: str | None = None
    """None: the task_id."""
    difficulty: Difficulty | None = None
    category: str | None = None
    max_steps: int = Field(DEFAULT_MAX_STEPS, ge=1)
    validation_query: str | None = None
    """A device query (`wifi_enabled`, `setting_global/wifi_on`); None: the task cannot be judged.
    """
    expected: str | int | bool | None = None
    """What it must answer; numbers and true or false are taken as text."""
    validation_config: dict[str, str] = {}
    setup: tuple[str, ...] = ()
    """Shell commands before the episode."""
    tags: tuple[str, ...] = ()
    app_name: str | None = None
    split: Split = "train"

    @model_validator(mode="after")
    def _can_be_asked(self) -> Self:
        if self.validation_query is not None and find_query(self.validation_query) is None:
            message = (
                f"validation_query: expected one of {', '.join(sorted(QUERIES))}, found"
                f" {self.validation_query!r}"
            )
            raise ValueError(message)
        if (self.validation_query is None) != (self.expected is None):
            message = "expected: validation_query and expected go together, found only one of them"
            raise ValueError(message)
        return self

    def task(self, source_type: str) -> Task:
        """As the rest of the producer knows tasks."""
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
    """One source."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source_type: SourceType
    category: str | None = None
    """Only tasks of this category."""
    difficulty: Difficulty | None = None
    """Only tasks of this difficulty."""
    limit: int | None = Field(None, ge=1)
    """At most so many, drawn with the seed; they keep their order."""
    seed: int = 42
    task_ids: tuple[str, ...] | None = Field(None, min_length=1)
    """Of `ids`: demo tasks by id."""
    file_path: Path | None = None
    """Of `file`: a JSON array, or JSON lines, of tasks as in custom_tasks."""
    custom_tasks: tuple[CustomTask, ...] | None = Field(None, min_length=1)
    """Of `custom`."""

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        for source_type, name in NEEDED.items():
            if (getattr(self, name) is not None) != (self.source_type == source_type):
                message = (
                    f"{name}: a source of type {source_type} needs it, no other takes it; found"
                    f" source_type {self.source_type!r}"
                )
                raise ValueError(message)
        return self


def parse_sources(text: str) -> JsonValue:
    """The JSON of a command line's --tasks. UsageError."""
    try:
        parsed: JsonValue = json.loads(text)
    except ValueError as error:
        message = (
            f'tasks: expected JSON such as {{"source_type": "demo_training"}}, found {text[:80]!r}'
            f" ({error})"
        )
        raise UsageError(message) from error
    return parsed


def load_tasks(source: JsonValue, *, judged_only: bool = True) -> list[Task]:
    """The tasks of a source or of a list of sources, in order. UsageError.

    With `judged_only`, demo tasks that cannot be judged are left out, and naming one, or a custom
    task without a validator, is an error: it could only ever fail. Without it they are all there.
    """
    sources = source if isinstance(source, list) else [source]
    tasks = []
    for position, one in enumerate(sources):
        where = f"tasks[{position}]" if isinstance(source, list) else "tasks"
        tasks += _load_one(_validated(one, where), where, judged_only=judged_only)
    if not tasks:
        message = "tasks: expected at least one source, found none"
        raise UsageError(message)
    return tasks


def _validated(source: JsonValue, where: str) -> Source:
    if not isinstance(source, dict):
        message = (
            f'{where}: expected an object such as {{"source_type": "demo_training"}}, found'
            f" {json.dumps(source)[:80]}"
        )
        raise UsageError(message)
    try:
        return Source.model_validate_json(json.dumps(source))
    except ValidationError as error:
        message = f"{where}{_reason(error)}"
        raise UsageError(message) from error


def _reason(error: ValidationError) -> str:
    """The first thing that is wrong, led by the field's path.

    A rule over several fields names its field itself.
    """
    first = error.errors()[0]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    if first["type"] == "value_error":
        return f"{path}.{first['msg'].removeprefix('Value error, ')}"
    found = (
        ""
        if first["type"] == "missing"
        else f", found {json.dumps(first['input'], default=str)[:80]}"
    )
    return f"{path}: {first['msg']}{found}"


def _load_one(source: Source, where: str, *, judged_only: bool) -> list[Task]:
    tasks = _candidates(source, where)
    named = source.source_type in NEEDED
    unjudged = [task.task_id for task in tasks if not task.is_judged]
    if judged_only and named and unjudged:
        message = (
            f"{where}.{NEEDED[source.source_type]}: expected tasks that can be judged, found"
            f" {', '.join(unjudged)}; give a validation_query"
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
        message = (
            f"{where}: no task has category {source.category!r} and difficulty"
            f" {source.difficulty!r}; `cua-train tasks list` shows them"
        )
        raise UsageError(message)
    if source.limit is None or source.limit >= len(tasks):
        return tasks
    chosen = sorted(Random(source.seed).sample(range(len(tasks)), source.limit))  # noqa: S311  # a sample, not a secret
    return [tasks[index] for index in chosen]


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
        case "database":
            message = (
                f"{where}.source_type: tasks cannot be read from the database yet, because"
                " `cua-project` has no command that lists them; use ids, file or custom"
            )
            raise UsageError(message)


def _by_ids(task_ids: Sequence[str], where: str) -> list[Task]:
    known = {task.task_id: task for task in demo_tasks()}
    unknown = [task_id for task_id in task_ids if task_id not in known]
    if unknown:
        message = (
            f"{where}.task_ids: expected ids of demo tasks (`cua-train tasks list`), found"
            f" {', '.join(unknown)}"
        )
        raise UsageError(message)
    return [known[task_id] for task_id in task_ids]


def _from_file(path: Path, where: str) -> list[Task]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{where}.file_path: expected a readable text file, found {path} ({error})"
        raise UsageError(message) from error
    try:
        rows = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else [json.loads(line) for line in text.splitlines() if line.strip()]
        )
    except ValueError as error:
        message = f"{where}.file_path: expected a JSON array or JSON lines in {path} ({error})"
        raise UsageError(message) from error
    if not rows:
        message = f"{where}.file_path: expected at least one task in {path}, found none"
        raise UsageError(message)
    tasks = []
    for number, row in enumerate(rows):
        try:
            tasks.append(CustomTask.model_validate_json(json.dumps(row)).task("file"))
        except ValidationError as error:
            message = f"{where}.file_path: {path}[{number}]{_reason(error)}"
            raise UsageError(message) from error
    return tasks
