"""A training step: its metrics, and its rollouts by group, coloured by reward."""

from itertools import groupby
from uuid import UUID

from sqlalchemy.orm import Session

from consumers.monitor import layout
from consumers.monitor.grid import grid, task_name, tasks_of, trail
from consumers.monitor.html import Node, tag
from consumers.queries import get_status_history, list_groups_by_step, list_rollouts_by_step
from consumers.tables import Step


def step_page(session: Session, step_id: UUID) -> layout.Document | None:
    """The page; None if the step does not exist."""
    step = session.get(Step, step_id)
    if step is None:
        return None
    rollouts = list_rollouts_by_step(session, step.id)
    groups = {group.id: group for group in list_groups_by_step(session, step.id)}
    tasks = tasks_of(session, rollouts)
    rows: list[tuple[Node, ...]] = []
    for group_id, members in groupby(rollouts, key=lambda rollout: rollout.group_id):
        cells = list(members)
        group = groups.get(group_id)
        rows.append(
            (
                str(cells[0].group_num),
                tag("span", task_name(tasks.get(cells[0].task_id)), class_="text"),
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
            ("learning rate", layout.rounded(step.learning_rate, digits=6)),
            ("tokens", layout.number(step.num_tokens)),
            ("generation", str(step.generation)),
            ("checkpoint", step.checkpoint_path or layout.ABSENT),
        ),
        tag("h2", "Groups"),
        layout.table(
            ("group", "task", "rollouts", "reward", "± sd", "status"), rows, "No rollout yet."
        ),
        tag("h2", "Status history"),
        layout.history(get_status_history(session, "step", step.id)),
    ]
    return layout.page(
        f"Step {step.step}",
        *body,
        trail=trail(session, step.training_id),
        live=step.status in layout.UNFINISHED,
    )
