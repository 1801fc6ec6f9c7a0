"""What evaluation tasks share with training tasks: whole tasks, instructions, golds, goals, names.

Success on a shared task, instruction, gold or goal measures recall. Shared targets, their
combinations with skills, and shared names of tables and columns show how much of an evaluation is
new.
"""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from producer.agents import AGENTS
from producer.sql_data.gold_form import Dialect, gold_form, gold_names
from producer.task import Task, joined_goals
from schemas.entry import EntryContent
from schemas.evaluation import Split
from schemas.ids import content_hash

NUM_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class Example:
    """An evaluation task, and the first training task that it shares something with."""

    eval_task: str
    """The evaluation task's `task_id`."""
    train_task: str
    shared: str
    """The values that both have."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """One measure, compared over training and evaluation tasks."""

    of: str
    """Name of the measure, a key of `MEASURES`."""
    num_train: int
    """Distinct values among the training tasks."""
    num_eval: int
    """Distinct values among the evaluation tasks."""
    num_shared: int
    """How many of the `num_eval` values training tasks have too."""
    num_eval_tasks: int
    """Evaluation tasks that have any value."""
    num_seen: int
    """How many of the `num_eval_tasks` have only values that training tasks have too."""
    examples: tuple[Example, ...]
    """The first few of these tasks."""


def content_of(task: Task) -> str:
    """Hex sha256 of the question and of how it is judged; equal for one task under two names."""
    fields = {
        name: getattr(task, name)
        for name in ("description", "setup", "validation_query", "expected_result", "judge")
    }
    if _is_worded_by_environment(task):
        fields["description"] = instruction_of(task)
    entry = None if task.entry is None else task.entry.model_copy(update={"entry_id": ""})
    content = None if entry is None else entry.model_dump(mode="json")
    return content_hash([fields, task.validation_config, content])


def instruction_of(task: Task) -> str:
    """The instruction, ignoring case, repeated spaces and punctuation at its end.

    An environment that judges its own tasks also words them, anew in each episode; then this is the
    task's id.
    """
    if _is_worded_by_environment(task):
        return f"{task.source_type} {task.task_id}"
    text = task.description if task.entry is None else task.entry.instruction
    words = unicodedata.normalize("NFKC", text).casefold().split()
    return " ".join(words).rstrip(".!?")


def _is_worded_by_environment(task: Task) -> bool:
    return task.judge == "environment"


class Goal(NamedTuple):
    """The device state that solves a task."""

    query: str
    """Device query; empty for a task that cannot be judged."""
    expected: str
    """The answer that solves the task; the task id if it cannot be judged."""
    config: tuple[tuple[str, str], ...]
    """The query's parameters, sorted."""


def goal_of(task: Task) -> Goal:
    """The task's goal, independent of the order of joined queries and the case of their answers.

    A task that cannot be judged has a goal that no other task shares.
    """
    if task.validation_query is None or task.expected_result is None:
        return Goal("", task.task_id, ())
    pairs = sorted(
        (query, answer.strip().lower())
        for query, answer in joined_goals(task.validation_query, task.expected_result)
    )
    return Goal(
        " & ".join(name for name, _ in pairs),
        " & ".join(answer for _, answer in pairs),
        tuple(sorted(task.validation_config.items())),
    )


def goal_leakage(train: Sequence[Task], evaluation: Sequence[Task]) -> dict[str, tuple[str, ...]]:
    """Map evaluation tasks to the training tasks with the same goal, by id. Others are left out."""
    trained: dict[Goal, list[str]] = {}
    for task in train:
        trained.setdefault(goal_of(task), []).append(task.task_id)
    return {
        task.task_id: tuple(trained[goal_of(task)])
        for task in evaluation
        if goal_of(task) in trained
    }


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


def _targets(task: Task) -> tuple[str, ...]:
    entry = task.entry
    if entry is not None:
        found = entry.database or (entry.table_info.name if entry.table_info else None)
        return () if found is None else (found.lower(),)
    if task.validation_query is None:
        return ()
    goal = goal_of(task)
    return (" ".join([goal.query, *(f"{k}={v}" for k, v in goal.config)]),)


def _combinations(task: Task) -> tuple[str, ...]:
    if task.entry is None or not task.entry.skills:
        return ()
    return tuple(f"{target}: {', '.join(task.entry.skills)}" for target in _targets(task))


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
    "task": lambda task: (content_of(task),),
    "instruction": lambda task: (instruction_of(task),),
    "gold": _golds,
    "goal": _goals,
    "target": _targets,
    "combination": _combinations,
    "names": _names,
}
"""Maps the name of a measure to a function that returns a task's values. `gold`: SQL without
literals and, for DB Bench, without the table's name. `goal`: the device state that solves the task.
`target`: the device query, the table or the database. `combination`: the target with the skills
that the gold needs. `names`: tables and columns."""
LEAKS: Final = ("task", "instruction", "gold", "goal")
"""The measures whose values a held-out task must not share."""


def overlaps(train: Sequence[Task], evaluation: Sequence[Task]) -> list[Overlap]:
    """The overlap in each measure of `MEASURES` for which evaluation tasks have any values."""
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


def split_of(trained: Iterable[Task], evaluated: Iterable[Task], *, seeds_matter: bool) -> Split:
    """Classify `evaluated` tasks for a policy that is trained on `trained`.

    `seeds_matter` tells whether a seed changes a task's initial state.
    """
    known = {question_of(task) for task in trained}
    asked = {question_of(task) for task in evaluated}
    if known.isdisjoint(asked):
        return "held_out"
    if not asked <= known:
        return "mixed"
    return "training_tasks_unseen_seeds" if seeds_matter else "training_tasks"


def question_of(task: Task) -> tuple[str, ...]:
    """What the agent is asked, up to case and spaces.

    Tasks for which it is equal are the same task.
    """
    if _is_worded_by_environment(task):
        return (str(task.source_type), task.task_id)
    if task.entry is None:
        return ("", _folded(task.description))
    entry = task.entry
    of = entry.database or (entry.table_info.name if entry.table_info else "")
    return (entry.kind, of, _folded(entry.instruction))


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
