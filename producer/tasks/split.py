"""How the tasks of an evaluation relate to those of the training, and a short name for them."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import JsonValue

from producer.task import Task
from schemas.evaluation import Split


def split_of(trained: Iterable[Task], evaluated: Iterable[Task], *, seeds_matter: bool) -> Split:
    """The split of `evaluated` tasks for a policy that is trained on `trained`.

    `seeds_matter`: whether a seed changes a task's initial state.
    """
    known = {question_of(task) for task in trained}
    asked = {question_of(task) for task in evaluated}
    if known.isdisjoint(asked):
        return "held_out"
    if not asked <= known:
        return "mixed"
    return "training_tasks_unseen_seeds" if seeds_matter else "training_tasks"


def question_of(task: Task) -> tuple[str, ...]:
    """What an agent is asked, up to case and spaces: tasks with the same one are the same task."""
    if task.entry is None:
        return ("", _normalised(task.description))
    entry = task.entry
    of = entry.database or (entry.table_info.name if entry.table_info else "")
    return (entry.kind, of, _normalised(entry.instruction))


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


def _normalised(text: str) -> str:
    return " ".join(text.casefold().split())
