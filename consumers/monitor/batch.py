"""A step, an eval or a baseline.

Its rollouts as a grid, a row per group or per task, coloured by reward.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from consumers.monitor import layout
from consumers.monitor.html import Html, Node, tag
from consumers.monitor.training import standard_error
from consumers.queries import (
    get_status_history,
    get_training,
    list_groups_by_step,
    list_rollouts_by_baseline,
    list_rollouts_by_eval,
    list_rollouts_by_step,
)
from consumers.tables import Baseline, Eval, Rollout, Step, Task

SHADES = 10
"""Steps of the colour scale between the lowest and the highest reward of the page (style.css: r0
... r10)."""


def step_page(session: Session, step_id: UUID) -> str | None:
    """One step's groups; None when there is no such step."""
    step = session.get(Step, step_id)
    if step is None:
        return None
    rollouts = list_rollouts_by_step(session, step.id)
    groups = {group.id: group for group in list_groups_by_step(session, step.id)}
    tasks = _tasks(session, rollouts)
    rows: list[tuple[Node, ...]] = []
    for group_id, members in groupby(rollouts, key=lambda rollout: rollout.group_id):
        cells = list(members)
        group = groups.get(group_id)
        rows.append(
            (
                str(cells[0].group_num),
                _task_name(tasks.get(cells[0].task_id)),
                grid(cells, rollouts),
                layout.number(group.reward_mean) if group else layout.ABSENT,
                layout.number(group.reward_std) if group else layout.ABSENT,
                (
                    [
                        layout.status(group.status),
                        f" dropped: {group.dropped_reason}" if group.dropped_reason else None,
                    ]
                    if group
                    else None
                ),
            )
        )
    body = [
        layout.facts(
            ("status", layout.status(step.status)),
            ("progress", layout.progress(step.progress_percent)),
            ("reward", layout.number(step.reward_mean)),
            ("loss", layout.number(step.loss)),
            ("KL", layout.number(step.kl_divergence)),
            ("gradient norm", layout.number(step.policy_gradient_norm)),
            ("learning rate", f"{step.learning_rate:g}"),
            ("tokens", layout.number(step.num_tokens)),
            ("generation", str(step.generation)),
            ("checkpoint", step.checkpoint_path or layout.ABSENT),
        ),
        tag("h2", "Groups"),
        layout.table(
            ("group", "task", "rollouts", "reward", "± sd", "status"), rows, "No rollout yet."
        ),
        tag("h2", "Status"),
        layout.history(get_status_history(session, "step", step.id)),
    ]
    return layout.page(
        f"Step {step.step}",
        *body,
        trail=trail(session, step.training_id),
        live=step.status in layout.UNFINISHED,
    )


def evaluation_page(session: Session, kind: str, evaluation_id: UUID) -> str | None:
    """One baseline's or eval's episodes by task; None when there is none with this id."""
    evaluation: Baseline | Eval | None
    evaluation = (
        session.get(Baseline, evaluation_id)
        if kind == "baseline"
        else session.get(Eval, evaluation_id)
    )
    if evaluation is None:
        return None
    by_source = list_rollouts_by_baseline if kind == "baseline" else list_rollouts_by_eval
    rollouts = by_source(session, evaluation.id)
    tasks = _tasks(session, rollouts)
    by_task: dict[UUID, list[Rollout]] = defaultdict(list)
    for rollout in rollouts:
        by_task[rollout.task_id].append(rollout)
    rows: list[tuple[Node, ...]] = []
    for task_id, episodes in sorted(
        by_task.items(), key=lambda item: _task_name(tasks.get(item[0]))
    ):
        judged = [episode.task_success for episode in episodes if episode.task_success is not None]
        solved = sum(judged)
        rows.append(
            (
                _task_name(tasks.get(task_id)),
                f"{solved} / {len(judged)}",
                layout.share(solved / len(judged) if judged else None),
                grid(episodes, rollouts),
            )
        )
    error = standard_error(evaluation)
    name = (
        "Baseline"
        if isinstance(evaluation, Baseline)
        else f"Evaluation after step {evaluation.step}"
    )
    body = [
        layout.facts(
            ("status", layout.status(evaluation.status)),
            ("progress", layout.progress(evaluation.progress_percent)),
            (
                "success",
                [
                    tag("strong", layout.share(evaluation.success_rate)),
                    f" ± {error * 100:.1f} %" if error else None,
                ],
            ),
            ("reward", layout.number(evaluation.avg_reward)),
            ("turns", layout.number(evaluation.avg_turns)),
            ("episodes", f"{evaluation.completed_tasks} / {evaluation.total_tasks}"),
            ("time", layout.duration(evaluation.eval_time)),
            ("policy", evaluation.model_path or layout.ABSENT),
        ),
        tag("h2", "Episodes by task"),
        layout.table(("task", "solved", "success", "episodes"), rows, "No rollout yet."),
        tag("h2", "Status"),
        layout.history(get_status_history(session, kind, evaluation.id)),
    ]
    above = trail(session, evaluation.training_id)
    return layout.page(name, *body, trail=above, live=evaluation.status in layout.UNFINISHED)


def trail(session: Session, training_id: UUID | None) -> list[tuple[str, str]]:
    """The way up from a page of a training; nothing for what no training made."""
    training = None if training_id is None else get_training(session, training_id)
    return (
        [] if training is None else [(training.run_name, layout.path_of("training", training.id))]
    )


def grid(rollouts: Iterable[Rollout], among: Sequence[Rollout]) -> Html:
    """A square per rollout, its shade by reward between the lowest and the highest of `among`."""
    rewards = [rollout.reward for rollout in among if rollout.reward is not None]
    low, high = (min(rewards), max(rewards)) if rewards else (0.0, 1.0)
    low, high = (
        min(low, 0.0),
        max(high, 1.0),
    )  # so that 0 and 1, the plain verdicts, look the same on every page

    def square(rollout: Rollout) -> Html:
        if rollout.reward is None:
            shade = "lost" if rollout.status in {"failed", "cancelled"} else "open"
        else:
            shade = f"r{round((rollout.reward - low) / (high - low) * SHADES)}"
        about = (
            f"{rollout.rollout_id}: {rollout.status}, reward {layout.number(rollout.reward)},"
            f" {layout.number(rollout.num_turns)} turns"
        )
        text = layout.ABSENT if rollout.reward is None else f"{rollout.reward:.2g}"
        return tag(
            "a",
            text,
            href=layout.path_of("rollout", rollout.id),
            class_=f"square {shade}",
            title=about,
        )

    return tag("div", *(square(rollout) for rollout in rollouts), class_="grid-row")


def _tasks(session: Session, rollouts: Sequence[Rollout]) -> dict[UUID, Task]:
    wanted = {rollout.task_id for rollout in rollouts}
    return {task.id: task for task in session.scalars(select(Task).where(Task.id.in_(wanted)))}


def _task_name(task: Task | None) -> str:
    return "(task not stated yet)" if task is None else f"{task.task_id}: {task.name}"
