"""Rollouts as a grid of squares coloured by reward, and the names around it."""

from collections.abc import Iterable, Sequence
from math import isfinite, isnan
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from consumers.monitor import layout
from consumers.monitor.html import Html, tag
from consumers.queries import get_training
from consumers.tables import Rollout, Task

SHADES = 10
"""Steps of the colour scale from the lowest to the highest reward (style.css: r0 ... r10)."""


def grid(rollouts: Iterable[Rollout], among: Sequence[Rollout]) -> Html:
    """A square per rollout, shaded by its reward relative to the rewards of `among`."""
    given = (rollout.reward for rollout in among)
    rewards = [reward for reward in given if reward is not None and isfinite(reward)]
    low, high = (min(rewards), max(rewards)) if rewards else (0.0, 1.0)
    # 0 and 1, the binary rewards, have the same shade on every page.
    low, high = min(low, 0.0), max(high, 1.0)

    def square(rollout: Rollout) -> Html:
        if rollout.reward is None:
            colour = "no-reward" if rollout.status in {"failed", "cancelled"} else "unfinished"
        else:
            colour = shade((rollout.reward - low) / (high - low))
        reward = (
            "no reward" if rollout.reward is None else f"reward {layout.rounded(rollout.reward)}"
        )
        turns = "1 turn" if rollout.num_turns == 1 else f"{layout.number(rollout.num_turns)} turns"
        hint = f"{rollout.rollout_id}: {rollout.status}, {reward}, {turns}"
        text = layout.ABSENT if rollout.reward is None else layout.rounded(rollout.reward, digits=2)
        return tag(
            "a",
            text,
            href=layout.path_of("rollout", rollout.id),
            class_=f"square {colour}",
            title=hint,
        )

    return tag("div", *(square(rollout) for rollout in rollouts), class_="grid-row")


def shade(share: float) -> str:
    """The class of a share from 0 to 1; what lies beyond has the nearest one's, NaN none."""
    if isnan(share):
        return "no-reward"
    return f"r{round(min(max(share, 0.0), 1.0) * SHADES)}"


def trail(session: Session, training_id: UUID | None) -> list[tuple[str, str]]:
    """Breadcrumb to the training; empty for an evaluation without one."""
    training = None if training_id is None else get_training(session, training_id)
    return (
        [] if training is None else [(training.run_name, layout.path_of("training", training.id))]
    )


def tasks_of(session: Session, rollouts: Sequence[Rollout]) -> dict[UUID, Task]:
    """The rollouts' tasks by row id; a task whose event is not projected yet is missing."""
    wanted = {rollout.task_id for rollout in rollouts}
    return {task.id: task for task in session.scalars(select(Task).where(Task.id.in_(wanted)))}


def task_name(task: Task | None) -> str:
    """How a page calls a task."""
    return "(task not recorded yet)" if task is None else f"{task.task_id}: {task.name}"
