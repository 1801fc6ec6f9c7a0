"""Runs an evaluation: seeds unused in training, one group per task, its own stream."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from uuid import UUID

from pydantic import JsonValue, TypeAdapter

from producer.config.training import EvaluationPass
from producer.emit import StreamWriter
from producer.emit.ownership import claim
from producer.errors import CuaTrainError, LogBrokenError, StopRequestedError
from producer.resume.recorded_results import RecordedResult
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
    evaluation_label,
)
from schemas.skills import SkillsMeasured, SkillSuccess

OnOutcomes = Callable[[Sequence[GroupOutcome]], None]
"""Called with the groups of an evaluation, one per task."""
_COUNTS = TypeAdapter(dict[str, tuple[int, int]])


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """A planned evaluation."""

    id: UUID
    label: str
    """Label in rollout names: `baseline`, `eval-20`, `eval-20-sampled`."""
    created: EvaluationCreated
    """The evaluation's first event."""
    unit: Unit
    """The evaluation's share of the progress."""


def plan_groups(
    tasks: Sequence[StatedTask], evaluation_id: UUID, *, episodes: int, seed: int
) -> list[GroupPlan]:
    """One group per task; seeds depend only on task and run seed, so evaluations compare."""
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
    on_outcomes: OnOutcomes = lambda _outcomes: None,
) -> EvaluationSummary:
    """Run it to its end, or return the recorded result.

    If it runs, `on_outcomes` gets its groups before its end is recorded. Raises CuaTrainError if no
    episode was judged.
    """
    recorded = session.history.evaluation_finished(plan.id)
    if recorded is not None:
        plan.unit.finished_rollouts = recorded.completed_tasks
        plan.unit.finished_turns = round(recorded.avg_turns * recorded.completed_tasks)
        return evaluation_summary(plan.label, RecordedResult(plan.id, plan.created, recorded))
    begun_s = monotonic()
    session.progress.phase = "evaluation"
    writer = _open_stream(session, plan)
    runner = _begin(session, plan, tasks, writer)
    try:
        outcomes = runner.run()
    except LogBrokenError:
        raise
    except Exception as error:
        if plan.created.kind == "manual":  # a scheduled one continues with its training
            _end_early(runner, writer, plan.created.kind, error, session.clock())
        raise
    on_outcomes(outcomes)
    if not _judged(outcomes):
        message = f"no episode of {plan.label} was judged; {runner.first_failure()}"
        kind, now = plan.created.kind, session.clock()
        writer.emit(EvaluationFailed(kind=kind, error_message=message, ended_at=now))
        raise CuaTrainError(message)
    finished = _finished(session, plan, outcomes, seconds=monotonic() - begun_s)
    writer.emit(finished)
    session.emitter.flush()
    writer.close()
    return evaluation_summary(plan.label, RecordedResult(plan.id, plan.created, finished))


def _open_stream(session: Session, plan: EvaluationPlan) -> StreamWriter:
    """The evaluation's stream, continued where an earlier process left it.

    A process that resumes a training reads its claim back, because a paused process may wake up and
    write the same evaluation, and this one's events would then be refused. Raises ClaimLostError.
    """
    subject = stream("evaluation", plan.id)
    history = session.history.of(subject)
    if session.claim_epoch == 1:
        return session.emitter.stream(subject, training_id=session.training_id)
    # An operator may have given up all its records; then it has a position but no creation event.
    is_created = any(isinstance(event.payload, EvaluationCreated) for event in history.events)
    first: Payload = _progressed(session, plan) if is_created else plan.created
    return claim(
        session.emitter,
        first,
        history,
        session.history.ends,
        training_id=session.training_id,
        timeout_s=math.inf,  # a trainer at work waits for the log, however long it is away
        stop=session.stop,
    ).stream


def _progressed(session: Session, plan: EvaluationPlan) -> EvaluationProgressed:
    return EvaluationProgressed(
        kind=plan.created.kind,
        current_phase="rollout",
        current_task_index=plan.unit.finished_rollouts,
        completed_tasks=plan.unit.finished_rollouts,
        progress=session.progress.tracker.of(plan.unit),
    )


def _begin(
    session: Session,
    plan: EvaluationPlan,
    tasks: Sequence[StatedTask],
    writer: StreamWriter,
) -> GroupRunner:
    progress = session.progress
    groups = plan_groups(
        tasks, plan.id, episodes=plan.created.total_tasks, seed=session.config.seed
    )
    writer.ensure(plan.created)
    writer.ensure(EvaluationStarted(kind=plan.created.kind, started_at=session.clock()))
    source = RolloutSource(
        "baseline" if plan.created.kind == "baseline" else "eval",
        plan.id,
        plan.label,
        session.generation,
        batch=0,
        stream=writer.subject,
    )

    def emit_progress() -> None:
        writer.emit(_progressed(session, plan))

    def on_progress() -> None:
        session.check_stop()
        progress.throttled(emit_progress)

    temperature = plan.created.temperature
    return GroupRunner(
        *(session, source, groups),
        stream=writer,
        unit=plan.unit,
        temperature=session.config.eval_temperature if temperature is None else temperature,
        on_progress=on_progress,
        recalled=session.recalled(source, groups),
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
    """Scored episodes of tasks with a judgement; the others have no success."""
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
        kind=plan.created.kind,
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


def evaluation_summary(label: str, result: RecordedResult) -> EvaluationSummary:
    """The result in the form that later steps and summaries need; `label` is the evaluation's."""
    created, finished = result.created, result.finished
    by_task = finished.metrics.get("by_task")
    known = by_task if isinstance(by_task, dict) else {}
    by_skill = finished.metrics.get("by_skill")
    return EvaluationSummary(
        label=label,
        step=created.step or 0,
        success=finished.success_rate,
        standard_error=finished.standard_error or 0.0,
        episodes=finished.completed_tasks,
        by_task={str(task): float(str(value)) for task, value in known.items()},
        metrics={
            name: float(value)
            for name, value in finished.metrics.items()
            if name.startswith("test/") and isinstance(value, int | float)
        },
        by_skill=_COUNTS.validate_python(by_skill or {}),
        temperature=created.temperature,
        split=created.split,
        num_tasks=created.num_tasks,
        task_source=created.task_source,
        evaluation_id=str(result.id),
        counts=counts_by_task(finished.metrics),
    )


def counts_by_task(metrics: Mapping[str, JsonValue]) -> dict[str, TaskCount]:
    """Successes and judged episodes by task; empty if they are not recorded."""
    counts = _COUNTS.validate_python(metrics.get("counts_by_task") or {})
    return {name: TaskCount(*count) for name, count in counts.items()}


@dataclass(frozen=True, slots=True)
class EvaluatedTasks:
    """The tasks that evaluations use."""

    tasks: Sequence[StatedTask]
    split: Split | None
    """Relation to the training's tasks; None without a training."""
    source: str
    """Short name of the tasks."""
    seeds_matter: bool
    """Whether the seed changes a task's initial state."""

    def created(
        self, session: Session, kind: Kind, step: int | None, asked: EvaluationPass
    ) -> EvaluationCreated:
        """The first event of an evaluation of these tasks, after `step` updates.

        If no seed changes a task, all its greedy episodes are equal, so only one of each is run.
        """
        episodes = asked.episodes
        if not asked.temperature and not self.seeds_matter:
            episodes = min(episodes, len(self.tasks))
        shares = episodes_of_tasks([task.task for task in self.tasks], episodes)
        return EvaluationCreated(
            kind=kind,
            training_id=session.training_id,
            generation=None if session.training_id is None else session.generation,
            step=step,
            model_path=session.learner.name,
            total_tasks=episodes,
            temperature=asked.temperature,
            split=self.split,
            num_tasks=len({task.task_id for task, _ in shares if task.is_judged}),
            task_source=self.source,
        )


def plan_evaluations(
    session: Session, evaluated: EvaluatedTasks, step: int, max_turns: int
) -> tuple[EvaluationPlan, ...]:
    """The evaluations of a training after step `step` (0: before the first).

    `max_turns` is per episode. The main evaluation comes first; a sampled one may follow a greedy
    one.
    """
    kind: Kind = "scheduled" if step else "baseline"
    plans = []
    for asked in session.config.evaluation_passes:
        created = evaluated.created(session, kind, step, asked)
        evaluation_id = ids.point_id(
            session.own_training_id, session.generation, step, asked.temperature
        )
        label = evaluation_label(kind, step, asked.temperature)
        unit = Unit(created.total_tasks, max_turns, is_step=False)
        plans.append(EvaluationPlan(evaluation_id, label, created, unit))
    return tuple(plans)


def skills_measured(
    session: Session, plan: EvaluationPlan, summary: EvaluationSummary
) -> SkillsMeasured | None:
    """The event of the skills measured; None without skills, or if it was already emitted."""
    by_skill = summary.by_skill
    stated = session.history.own_payloads(SkillsMeasured)
    if not by_skill or any(item.evaluation_id == plan.id for item in stated):
        return None
    config, step = session.config, plan.created.step or 0
    stage = skill = None
    if config.skill_sequence is not None:
        done, part = divmod(step, config.steps_per_skill)
        stage = None if part else done
        trained = config.skill_sequence[: done + bool(part)]
        skill = trained[-1] if trained else None
    return SkillsMeasured(
        evaluation_id=plan.id,
        generation=session.generation,
        step=step,
        stage=stage,
        trained_skill=skill,
        skills=tuple(
            SkillSuccess(
                skill=name, num_sessions=total, num_correct=right, success_rate=right / total
            )
            for name, (total, right) in sorted(by_skill.items())
        ),
        measured_at=session.clock(),
    )
