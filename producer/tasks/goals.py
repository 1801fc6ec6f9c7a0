"""Goals: what a task asks of the device, whatever its words.

Two tasks with one goal are the same problem to a policy.

Finds evaluation tasks whose goal is also trained on (leakage), and splits tasks so that no goal is
on both sides.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from producer.task import Task


class Goal(NamedTuple):
    """The state that solves a task."""

    query: str
    expected: str
    config: tuple[tuple[str, str], ...]


class GoalSplit(NamedTuple):
    """Tasks apart by goal."""

    train: tuple[Task, ...]
    eval: tuple[Task, ...]


def goal_of(task: Task) -> Goal:
    """A task that cannot be judged has a goal of its own."""
    if task.validation_query is None or task.expected_result is None:
        return Goal("", task.task_id, ())
    return Goal(
        task.validation_query, task.expected_result, tuple(sorted(task.validation_config.items()))
    )


def goal_leakage(train: Sequence[Task], evaluation: Sequence[Task]) -> dict[str, tuple[str, ...]]:
    """Ids of evaluation tasks -> ids of the training tasks that have the same goal.

    Only those that have any.
    """
    trained: dict[Goal, list[str]] = {}
    for task in train:
        trained.setdefault(goal_of(task), []).append(task.task_id)
    return {
        task.task_id: tuple(trained[goal_of(task)])
        for task in evaluation
        if goal_of(task) in trained
    }


def goal_split(tasks: Sequence[Task], *, eval_share: float, seed: int) -> GoalSplit:
    """About `eval_share` (0-1) of the goals, drawn with the seed, go to evaluation with all of their tasks; order is kept.

    ValueError when one side would be empty.
    """
    goals = sorted({goal_of(task) for task in tasks})
    num_eval = round(len(goals) * eval_share)
    if not 0 < num_eval < len(goals):
        message = (
            f"expected a share that leaves goals on both sides, found {eval_share} of {len(goals)}"
            " goals"
        )
        raise ValueError(message)
    held_out = set(Random(seed).sample(goals, num_eval))  # noqa: S311  # a split, not a secret
    train = tuple(task for task in tasks if goal_of(task) not in held_out)
    return GoalSplit(train, tuple(task for task in tasks if goal_of(task) in held_out))
