"""One training: its settings, curves, evaluations, steps and status history."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy.orm import Session

from consumers.monitor import layout, measured
from consumers.monitor.chart import Series, chart
from consumers.monitor.html import Node, tag
from consumers.monitor.skills import sessions_section, skills_section
from consumers.queries import (
    count_leaked_devices,
    gains_by_temperature,
    get_status_history,
    get_training,
    list_baselines_by_training,
    list_evals_by_training,
    list_scorings_by_training,
    list_steps_by_training,
)
from consumers.tables import Baseline, Eval, Scoring, Step, Training
from schemas.evaluation_text import temperature_text


def training_page(
    session: Session, training_id: UUID, now: datetime, most_steps: int | None = None
) -> layout.Document | None:
    """The page; None if the training does not exist.

    `most_steps`: of more steps the table has the last, and the curves every second, third ...
    """
    training = get_training(session, training_id)
    if training is None:
        return None
    steps = list_steps_by_training(session, training.id)
    baselines = list_baselines_by_training(session, training.id)
    evals = list_evals_by_training(session, training.id)
    return layout.page(
        training.run_name,
        _facts(training, now),
        _leaked(count_leaked_devices(session, training.id)),
        tag("p", training.error_message, class_="warning") if training.error_message else None,
        tag("div", *_charts(_thinned(steps, most_steps), [*baselines, *evals]), class_="charts"),
        tag("h2", "Evaluations"),
        [measured.gain_text(gain) for gain in gains_by_temperature([*baselines, *evals])],
        _evaluations(baselines, evals),
        skills_section(session, training.id),
        sessions_section(session, training.id),
        _scored_again(list_scorings_by_training(session, training.id)),
        tag("h2", "Steps"),
        _left_out(len(steps), most_steps),
        _steps(steps if most_steps is None else steps[-most_steps:]),
        tag("h2", "Status history"),
        layout.history(get_status_history(session, "training", training.id)),
        live=training.status in layout.UNFINISHED,
    )


def _thinned(steps: Sequence[Step], most: int | None) -> Sequence[Step]:
    if most is None or len(steps) <= most:
        return steps
    return steps[:: -(-len(steps) // most)]


def _left_out(number: int, most: int | None) -> Node:
    if most is None or number <= most:
        return None
    return tag("p", f"The last {most:,} of {number:,} steps.", class_="faint")


def _facts(training: Training, now: datetime) -> Node:
    is_over = training.status not in layout.UNFINISHED
    return layout.facts(
        ("status", layout.status(training.status)),
        ("progress", layout.progress(training.progress_percent)),
        ("phase", layout.ABSENT if is_over else training.current_phase or layout.ABSENT),
        ("step", f"{training.current_step} / {training.total_steps}"),
        ("heartbeat", layout.heartbeat(training.last_heartbeat, now, training.status)),
        (
            "remaining",
            layout.ABSENT if is_over else layout.duration(training.estimated_remaining_time),
        ),
        ("environment", layout.environment(training)),
        ("policy", training.model_name),
        ("learning rate", layout.rounded(training.learning_rate, digits=6)),
        ("rollouts per step", f"{training.groups_per_batch} groups of {training.group_size}"),
        ("LoRA rank", layout.number(training.lora_rank)),
        ("max turns", layout.number(training.max_turns)),
        ("temperature", layout.rounded(training.temperature, digits=6)),
        ("seed", str(training.seed)),
        ("generation", str(training.generation)),
        ("message", training.status_message or layout.ABSENT),
        ("files", training.log_path or layout.ABSENT),
    )


def _leaked(number: int) -> Node:
    if not number:
        return None
    devices = "1 device was" if number == 1 else f"{number:,} devices were"
    return tag("p", f"{devices} not released and may still run.", class_="warning")


def _charts(steps: Sequence[Step], evaluations: Sequence[Baseline | Eval]) -> list[Node]:
    done = [step for step in steps if step.status == "completed"]

    def line(column: str) -> list[tuple[float, float]]:
        return [
            (float(step.step), value)
            for step in done
            if (value := getattr(step, column)) is not None
        ]

    return [
        chart(
            "Success of evaluations, by step",
            *_success_series(evaluations),
            low=0,
            high=1,
        ),
        chart("Mean reward of rollouts, by step", Series("reward", line("reward_mean"))),
        chart("Loss, by step", Series("loss", line("loss"))),
        chart(
            "KL divergence between sampling and training policy, by step",
            Series("KL", line("kl_divergence")),
        ),
    ]


def _success_series(evaluations: Sequence[Baseline | Eval]) -> list[Series]:
    """One for each temperature; evaluations by hand may ask other tasks, and are no points."""
    of: dict[float | None, list[Baseline | Eval]] = defaultdict(list)
    for evaluation in evaluations:
        if isinstance(evaluation, Baseline) or evaluation.kind == "scheduled":
            of[evaluation.temperature].append(evaluation)
    return [
        Series(
            "success" if temperature is None else f"{temperature_text(temperature)}: success",
            [
                (float(item.step or 0), item.success_rate)
                for item in ones
                if item.success_rate is not None
            ],
            [measured.standard_error(item) for item in ones if item.success_rate is not None],
        )
        for temperature, ones in sorted(
            of.items(), key=lambda item: (item[0] is not None, item[0] or 0)
        )
    ]


def _evaluations(baselines: Sequence[Baseline], evals: Sequence[Eval]) -> Node:
    def row(kind: str, name: str, evaluation: Baseline | Eval) -> tuple[Node, ...]:
        return (
            layout.link(name, kind, evaluation.id),
            layout.number(evaluation.step),
            layout.status(evaluation.status),
            layout.progress(evaluation.progress_percent),
            measured.success(evaluation),
            temperature_text(evaluation.temperature),
            measured.tasks(evaluation),
            layout.number(evaluation.avg_reward),
            layout.number(evaluation.avg_turns),
            f"{evaluation.completed_tasks} / {evaluation.total_tasks}",
            layout.duration(evaluation.eval_time),
        )

    rows = [row("baseline", "baseline", baseline) for baseline in baselines]
    rows += [row("eval", evaluation.kind, evaluation) for evaluation in evals]
    columns = (
        "evaluation",
        "step",
        "status",
        "progress",
        "success",
        "temperature",
        "tasks",
        "reward",
        "turns",
        "episodes",
        "time",
    )
    return layout.table(columns, rows, "No evaluation yet.")


def _scored_again(scorings: Sequence[Scoring]) -> Node:
    """Nothing for the many trainings that were not scored again."""
    if not scorings:
        return None
    rows = [
        (
            layout.moment(scoring.created_at),
            scoring.reward_name,
            scoring.judge or "the recorded verdicts",
            layout.number(scoring.reward_mean),
            layout.share(scoring.success_rate),
            layout.number(scoring.scored_rollouts),
            layout.number(scoring.failed_rollouts),
        )
        for scoring in scorings
    ]
    columns = ("when", "reward", "judge", "mean reward", "success", "rollouts", "not scored")
    return [tag("h2", "Scored again"), layout.table(columns, rows, "")]


def _steps(steps: Sequence[Step]) -> Node:
    rows = [
        (
            layout.link(f"step {step.step}", "step", step.id),
            layout.status(step.status),
            layout.progress(step.progress_percent),
            layout.number(step.reward_mean),
            layout.number(step.reward_std),
            layout.number(step.loss),
            layout.number(step.kl_divergence),
            layout.number(step.policy_gradient_norm),
            layout.number(step.num_trajectories),
            layout.number(step.num_tokens),
            layout.duration(_seconds(step.rollout_start_time, step.rollout_end_time)),
            layout.duration(_seconds(step.training_start_time, step.training_end_time)),
            "kept" if step.checkpoint_path else None,
        )
        for step in steps
    ]
    columns = (
        *(
            "step",
            "status",
            "progress",
            "reward",
            "± sd",
            "loss",
            "KL",
            "gradient",
            "rollouts",
            "tokens",
        ),
        *("rollouts took", "update took", "checkpoint"),
    )
    return layout.table(columns, rows, "No step yet.")


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else (end - start).total_seconds()
