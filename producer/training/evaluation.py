"""Runs one evaluation: seeds that training never sees, a group per task, a stream of its own."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from uuid import UUID

from pydantic import JsonValue, TypeAdapter

from producer.emit import StreamWriter
from producer.emit.ownership import claim
from producer.errors import CuaTrainError, LogBrokenError, StopRequestedError
from producer.resume.resume_state import EvaluationSummary
from producer.rollouts.plan import (
    GroupOutcome,
    GroupPlan,
    RolloutResult,
    RolloutSource,
    StatedTask,
)
from producer.seeds import derived_seed
from producer.training.batches import episodes_of_tasks
from producer.training.groups import GroupRunner
from producer.training.metrics import evaluation_metrics
from producer.training.progress import Unit
from producer.training.session import Session
from schemas import ids
from schemas.base import Payload
from schemas.catalogue import stream
from schemas.clustered_errors import TaskCount, clustered_standard_error
from schemas.evaluation import (
    EvaluationCancelled,
    EvaluationCreated,
    EvaluationFailed,
    EvaluationFinished,
    EvaluationProgressed,
    EvaluationStarted,
    Kind,
    Split,
)

OnOutcomes = Callable[[Sequence[GroupOutcome]], None]
"""Takes the groups of an evaluation, one of each task."""
_COUNTS = TypeAdapter(dict[str, tuple[int, int]])


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """Which evaluation."""

    kind: Kind
    id: UUID
    label: str
    """In rollout names: `baseline`, `eval-20`, `eval-20-sampled`."""
    step: int | None
    """Updates that the policy has had."""
    temperature: float | None
    """0 is greedy. None: a recorded evaluation that does not tell."""
    episodes: int = 0
    split: Split | None = None
    num_tasks: int | None = None
    task_source: str | None = None


def plan_groups(
    tasks: Sequence[StatedTask], evaluation_id: UUID, *, episodes: int, seed: int
) -> list[GroupPlan]:
    """One group per task; seeds depend on task and run seed only, so that evaluations compare."""
    by_id = {task.task.task_id: task for task in tasks}
    return [
        GroupPlan(
            num=num,
            id=ids.group_id(evaluation_id, num),
            stated=by_id[task.task_id],
            seeds=tuple(
                derived_seed(seed, "evaluation", task.task_id, episode) for episode in range(count)
            ),
        )
        for num, (task, count) in enumerate(
            episodes_of_tasks([task.task for task in tasks], episodes)
        )
    ]


def run_evaluation(
    session: Session,
    plan: EvaluationPlan,
    tasks: Sequence[StatedTask],
    unit: Unit,
    on_outcomes: OnOutcomes = lambda _outcomes: None,
) -> EvaluationSummary:
    """Run it to its end, or return the recorded result. CuaTrainError when no episode ended.

    `on_outcomes` gets the groups of one that runs, before its end is recorded.
    """
    recorded = session.history.evaluation_finished(plan.id)
    if recorded is not None:
        unit.finished_rollouts = recorded.completed_tasks
        unit.finished_turns = round(recorded.avg_turns * recorded.completed_tasks)
        return evaluation_summary(plan, recorded)
    begun_s = monotonic()
    session.progress.phase = "evaluation"
    writer = _open_stream(session, plan, unit)
    runner = _begin(session, plan, tasks, unit, writer)
    try:
        outcomes = runner.run()
    except LogBrokenError:
        raise
    except Exception as error:
        if plan.kind == "manual":  # a scheduled one continues with its training
            _end_early(runner, writer, plan.kind, error, session.clock())
        raise
    on_outcomes(outcomes)
    if not _judged(outcomes):
        message = f"no episode of {plan.label} was judged; {runner.first_failure()}"
        writer.emit(
            EvaluationFailed(kind=plan.kind, error_message=message, ended_at=session.clock())
        )
        raise CuaTrainError(message)
    finished = _finished(session, plan, outcomes, seconds=monotonic() - begun_s)
    writer.emit(finished)
    session.emitter.flush()
    writer.close()
    return evaluation_summary(plan, finished)


def _open_stream(session: Session, plan: EvaluationPlan, unit: Unit) -> StreamWriter:
    """The evaluation's stream, continued where an earlier process left it.

    A process that continues a training reads its claim back: a paused one that goes on may be
    writing the same evaluation, and then this one's events would be refused. ClaimLostError.
    """
    subject = stream("evaluation", plan.id)
    history = session.history.of(subject)
    for payload in session.history.payloads_of(subject):
        if isinstance(payload, EvaluationProgressed):
            unit.highest_percent = payload.progress.percent
            unit.highest_finished_rollouts = payload.completed_tasks
    if session.claim_epoch == 1:
        return session.emitter.stream(subject, training_id=session.training_id)
    # An operator may have given up every record of it: then it has a position and no creation.
    is_created = any(isinstance(event.payload, EvaluationCreated) for event in history.events)
    first: Payload = _progressed(session, plan, unit) if is_created else _created(session, plan)
    return claim(
        session.emitter,
        first,
        history,
        session.history.ends,
        training_id=session.training_id,
        timeout_s=math.inf,  # a trainer at work waits for the log, however long it is away
        stop=session.stop,
    ).stream


def _created(session: Session, plan: EvaluationPlan) -> EvaluationCreated:
    return EvaluationCreated(
        kind=plan.kind,
        training_id=session.training_id,
        generation=None if session.training_id is None else session.generation,
        step=plan.step,
        model_path=session.learner.name,
        total_tasks=plan.episodes,
        temperature=plan.temperature,
        split=plan.split,
        num_tasks=plan.num_tasks,
        task_source=plan.task_source,
    )


def _progressed(session: Session, plan: EvaluationPlan, unit: Unit) -> EvaluationProgressed:
    return EvaluationProgressed(
        kind=plan.kind,
        current_phase="rollout",
        current_task_index=unit.finished_so_far,
        completed_tasks=unit.finished_so_far,
        progress=session.progress.tracker.of(unit),
    )


def _begin(
    session: Session,
    plan: EvaluationPlan,
    tasks: Sequence[StatedTask],
    unit: Unit,
    writer: StreamWriter,
) -> GroupRunner:
    progress = session.progress
    groups = plan_groups(tasks, plan.id, episodes=plan.episodes, seed=session.config.seed)
    writer.ensure(_created(session, plan))
    writer.ensure(EvaluationStarted(kind=plan.kind, started_at=session.clock()))
    source = RolloutSource(
        "baseline" if plan.kind == "baseline" else "eval",
        plan.id,
        plan.label,
        session.generation,
        batch=0,
        stream=writer.subject,
    )

    def emit_progress() -> None:
        writer.emit(_progressed(session, plan, unit))

    def on_progress() -> None:
        session.check_stop()
        progress.throttled(emit_progress)

    return GroupRunner(
        source,
        groups,
        settings=session.evaluation_settings(plan.temperature),
        recalled=session.recalled(source, groups),
        stream=writer,
        make_engine=session.make_engine,
        tracker=progress.tracker,
        unit=unit,
        on_progress=on_progress,
        clock=session.clock,
    )


def _end_early(
    runner: GroupRunner, writer: StreamWriter, kind: Kind, error: Exception, now: datetime
) -> None:
    """End an evaluation that will not be continued."""
    ending: Payload
    if isinstance(error, StopRequestedError):
        reason = "stopped on request"
        ending = EvaluationCancelled(kind=kind, reason=reason, ended_at=now)
    else:
        reason = f"{type(error).__name__}: {error}"[:2000]
        ending = EvaluationFailed(kind=kind, error_message=reason, ended_at=now)
    runner.give_up(reason)
    writer.emit(ending)


def _judged(outcomes: Sequence[GroupOutcome]) -> list[RolloutResult]:
    """Scored episodes of tasks that are judged; others have no success."""
    return [
        result
        for outcome in outcomes
        if outcome.plan.stated.task.is_judged
        for result in outcome.results
    ]


def _finished(
    session: Session, plan: EvaluationPlan, outcomes: Sequence[GroupOutcome], *, seconds: float
) -> EvaluationFinished:
    results = _judged(outcomes)
    successes = sum(result.success for result in results)
    metrics = evaluation_metrics(
        [outcome for outcome in outcomes if outcome.plan.stated.task.is_judged], seconds=seconds
    )
    return EvaluationFinished(
        kind=plan.kind,
        completed_tasks=len(results),
        eval_time_s=seconds,
        success_rate=successes / len(results),
        standard_error=clustered_standard_error(counts_by_task(metrics)),
        avg_reward=statistics.fmean(result.reward for result in results),
        avg_turns=statistics.fmean(result.num_turns for result in results),
        successful_tasks=successes,
        ended_at=session.clock(),
        progress=session.progress.tracker.finished(),
        metrics=metrics,
    )


def evaluation_summary(plan: EvaluationPlan, finished: EvaluationFinished) -> EvaluationSummary:
    """The result as later steps and summaries need it."""
    by_task = finished.metrics.get("by_task")
    known = by_task if isinstance(by_task, dict) else {}
    by_skill = finished.metrics.get("by_skill")
    error = finished.standard_error
    if error is None:
        # An older release recorded the error over episodes.
        recorded = finished.metrics.get("standard_error")
        error = float(recorded) if isinstance(recorded, int | float) else 0.0
    return EvaluationSummary(
        label=plan.label,
        step=plan.step or 0,
        success=finished.success_rate,
        standard_error=error,
        episodes=finished.completed_tasks,
        by_task={str(task): float(str(value)) for task, value in known.items()},
        metrics={
            name: float(value)
            for name, value in finished.metrics.items()
            if name.startswith("test/") and isinstance(value, int | float)
        },
        by_skill=_COUNTS.validate_python(by_skill or {}),
        temperature=plan.temperature,
        split=plan.split,
        num_tasks=plan.num_tasks,
        task_source=plan.task_source,
        evaluation_id=str(plan.id),
        counts=counts_by_task(finished.metrics),
    )


def counts_by_task(metrics: Mapping[str, JsonValue]) -> dict[str, TaskCount]:
    """Successes and judged episodes by task; empty for an older release's metrics."""
    counts = _COUNTS.validate_python(metrics.get("counts_by_task") or {})
    return {name: TaskCount(*count) for name, count in counts.items()}
