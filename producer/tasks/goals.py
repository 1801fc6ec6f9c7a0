"""Goals: the device state that solves a task, regardless of the instruction's wording.

Two tasks with the same goal are the same problem to a policy, so an evaluation task whose goal is
also trained on measures recall, not generalization (goal leakage).
"""

from collections.abc import Sequence
from typing import NamedTuple

from producer.task import Task


class Goal(NamedTuple):
    """The device state that solves a task."""

    query: str
    """Device query; empty for a task that cannot be judged."""
    expected: str
    """The answer that solves the task; the task id if it cannot be judged."""
    config: tuple[tuple[str, str], ...]
    """The query's parameters, sorted."""


def goal_of(task: Task) -> Goal:
    """The task's goal; a task that cannot be judged has a goal of its own."""
    if task.validation_query is None or task.expected_result is None:
        return Goal("", task.task_id, ())
    return Goal(
        task.validation_query, task.expected_result, tuple(sorted(task.validation_config.items()))
    )


def goal_leakage(train: Sequence[Task], evaluation: Sequence[Task]) -> dict[str, tuple[str, ...]]:
    """Evaluation task id -> ids of training tasks with the same goal, if there are any."""
    trained: dict[Goal, list[str]] = {}
    for task in train:
        trained.setdefault(goal_of(task), []).append(task.task_id)
    return {
        task.task_id: tuple(trained[goal_of(task)])
        for task in evaluation
        if goal_of(task) in trained
    }
