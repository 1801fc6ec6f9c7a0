"""A baseline or an eval: its success, and its episodes by task, coloured by reward."""

from collections import defaultdict
from uuid import UUID

from sqlalchemy.orm import Session

from consumers.monitor import layout, measured
from consumers.monitor.grid import grid, task_name, tasks_of, trail
from consumers.monitor.html import Node, tag
from consumers.monitor.skills import evaluation_skills
from consumers.queries import (
    get_status_history,
    list_rollouts_by_baseline,
    list_rollouts_by_eval,
)
from consumers.tables import Baseline, Eval, Rollout
from schemas.evaluation_text import temperature_text


def evaluation_page(session: Session, kind: str, evaluation_id: UUID) -> layout.Document | None:
    """The page of a `baseline` or `eval`; None if it does not exist."""
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
    tasks = tasks_of(session, rollouts)
    by_task: dict[UUID, list[Rollout]] = defaultdict(list)
    for rollout in rollouts:
        by_task[rollout.task_id].append(rollout)
    rows: list[tuple[Node, ...]] = []
    for task_id, episodes in sorted(
        by_task.items(), key=lambda item: task_name(tasks.get(item[0]))
    ):
        judged = [episode.task_success for episode in episodes if episode.task_success is not None]
        solved = sum(judged)
        rows.append(
            (
                tag("span", task_name(tasks.get(task_id)), class_="text"),
                f"{solved} / {len(judged)}",
                layout.share(solved / len(judged) if judged else None),
                grid(episodes, rollouts),
            )
        )
    body = [
        layout.facts(
            ("status", layout.status(evaluation.status)),
            ("progress", layout.progress(evaluation.progress_percent)),
            ("success", measured.success(evaluation)),
            ("temperature", temperature_text(evaluation.temperature)),
            ("tasks", measured.tasks(evaluation)),
            ("reward", layout.number(evaluation.avg_reward)),
            ("turns", layout.number(evaluation.avg_turns)),
            ("episodes", f"{evaluation.completed_tasks} / {evaluation.total_tasks}"),
            ("time", layout.duration(evaluation.eval_time)),
            ("policy", evaluation.model_path or layout.ABSENT),
        ),
        tag("h2", "Episodes by task"),
        layout.table(("task", "solved", "success", "episodes"), rows, "No rollout yet."),
        evaluation_skills(session, evaluation.id),
        tag("h2", "Status history"),
        layout.history(get_status_history(session, kind, evaluation.id)),
    ]
    above = trail(session, evaluation.training_id)
    name = measured.name_of(evaluation)
    return layout.page(name, *body, trail=above, live=evaluation.status in layout.UNFINISHED)
