"""What evaluation tasks share with training tasks: whole tasks, instructions, golds, goals, names.

Success on a shared task, instruction, gold or goal measures recall. The shared names of tables and
columns show how much of the evaluation's vocabulary is new.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from producer.agents import AGENTS
from producer.sql_data.gold_form import Dialect, gold_form, gold_names
from producer.task import Task
from producer.tasks.goals import goal_of
from schemas.entry import EntryContent
from schemas.ids import content_hash

NUM_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class Example:
    """An evaluation task and the first training task that it shares something with."""

    eval_task: str
    """Its `task_id`."""
    train_task: str
    shared: str
    """What both have."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """One thing that tasks have, compared over two sets of them."""

    of: str
    """Of `MEASURES`."""
    num_train: int
    """Different ones of the training tasks."""
    num_eval: int
    """Different ones of the evaluation tasks."""
    num_shared: int
    """Of `num_eval`, those that training tasks have too."""
    num_eval_tasks: int
    """Evaluation tasks that have any."""
    num_seen: int
    """Of `num_eval_tasks`, those of which training tasks have all."""
    examples: tuple[Example, ...]
    """The first few of the tasks that are seen."""


def content_of(task: Task) -> str:
    """Hex sha256 of what is asked and how it is judged: equal for one task under two names."""
    fields = {
        name: getattr(task, name)
        for name in ("description", "setup", "validation_query", "expected_result", "judge")
    }
    entry = None if task.entry is None else task.entry.model_copy(update={"entry_id": ""})
    content = None if entry is None else entry.model_dump(mode="json")
    return content_hash([fields, task.validation_config, content])


def instruction_of(task: Task) -> str:
    """What is asked, without case, repeated spaces and the marks at its end."""
    text = task.description if task.entry is None else task.entry.instruction
    words = unicodedata.normalize("NFKC", text).casefold().split()
    return " ".join(words).rstrip(".!?")


def _contents(task: Task) -> tuple[str, ...]:
    return (content_of(task),)


def _instructions(task: Task) -> tuple[str, ...]:
    return (instruction_of(task),)


def _golds(task: Task) -> tuple[str, ...]:
    entry = task.entry
    if entry is None or entry.sql is None:
        return ()
    return (gold_form(entry.sql, _dialect(entry), entry.table_info and entry.table_info.name),)


def _goals(task: Task) -> tuple[str, ...]:
    if task.entry is not None or task.validation_query is None:
        return ()
    goal = goal_of(task)
    return (" ".join([goal.query, goal.expected, *(f"{k}={v}" for k, v in goal.config)]),)


def _names(task: Task) -> tuple[str, ...]:
    entry = task.entry
    if entry is None:
        return ()
    if entry.table_info is not None:
        return (entry.table_info.name, *(column.name for column in entry.table_info.columns))
    return () if entry.sql is None else gold_names(entry.sql, _dialect(entry))


def _dialect(entry: EntryContent) -> Dialect:
    return AGENTS[entry.kind].sql_dialect or "sqlite"


MEASURES: Final[dict[str, Callable[[Task], tuple[str, ...]]]] = {
    "task": _contents,
    "instruction": _instructions,
    "gold": _golds,
    "goal": _goals,
    "names": _names,
}
"""What is compared -> those that a task has. `gold`: SQL up to literals, and the table's name of DB
Bench; `goal`: the device state that solves it; `names`: tables and columns."""
LEAKS: Final = ("task", "instruction", "gold", "goal")
"""Of these, what a held-out task must not share."""


def overlaps(train: Sequence[Task], evaluation: Sequence[Task]) -> list[Overlap]:
    """One for each of `MEASURES` that evaluation tasks have."""
    found = [_overlap(name, train, evaluation) for name in MEASURES]
    return [item for item in found if item.num_eval_tasks]


def _overlap(name: str, train: Sequence[Task], evaluation: Sequence[Task]) -> Overlap:
    measure = MEASURES[name]
    trained: dict[str, str] = {}
    for task in train:
        for item in measure(task):
            trained.setdefault(item, task.task_id)
    own = [(task.task_id, measure(task)) for task in evaluation]
    having = [(task_id, values) for task_id, values in own if values]
    values = {item for _, several in having for item in several}
    seen = [(task_id, several) for task_id, several in having if {*several} <= trained.keys()]
    return Overlap(
        of=name,
        num_train=len(trained),
        num_eval=len(values),
        num_shared=len(values & trained.keys()),
        num_eval_tasks=len(having),
        num_seen=len(seen),
        examples=tuple(
            Example(task_id, trained[several[0]], ", ".join(several))
            for task_id, several in seen[:NUM_EXAMPLES]
        ),
    )
