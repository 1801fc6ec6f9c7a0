"""Runs one evaluation: greedy episodes on seeds that training never sees, grouped by task, in a stream of its own."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from uuid import UUID

from producer.emit.speaker import StreamSpeaker
from producer.errors import CuaTrainError, LogBrokenError, StopRequestedError
from producer.resume.resume_state import EvaluationSummary
from producer.rollouts.plan import GroupOutcome, GroupPlan, RolloutSource, StatedTask
from producer.seeds import derived_seed
from producer.training.batches import episodes_of_tasks
from producer.training.groups import GroupRunner
from producer.training.progress import Unit
from producer.training.session import Session
from schemas import ids
from schemas.base import Payload
from schemas.catalogue import stream
from schemas.evaluation import (
    EvaluationCancelled,
    EvaluationCreated,
    EvaluationFailed,
    EvaluationFinished,
    EvaluationProgressed,
    EvaluationStarted,
    Kind,
)


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """Which evaluation."""

    kind: Kind
    id: UUID
    label: str
    """In rollout names: `baseline`, `eval-20`."""
    step: int | None
    """Steps that the policy has had."""


def standard_error(success: float, episodes: int) -> float:
    """Of a success rate over independent episodes: sqrt(p (1 - p) / n)."""
    return math.sqrt(success * (1 - success) / episodes) if episodes else 0.0


def plan_groups(
    stated: Sequence[StatedTask], evaluation_id: UUID, *, episodes: int, seed: int
) -> list[GroupPlan]:
    """A group per task; its seeds depend on the task and the run's seed alone, so that evaluations of one run can be compared."""
    by_id = {one.task.task_id: one for one in stated}
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
            episodes_of_tasks([one.task for one in stated], episodes)
        )
    ]


def run_evaluation(
    session: Session, plan: EvaluationPlan, stated: Sequence[StatedTask], unit: Unit
) -> EvaluationSummary:
    """Run it to its end, or take what the log has of it.

    CuaTrainError when no episode could be scored.
    """
    finished = session.training_history.evaluation_finished(plan.id)
    if finished is not None:
        unit.finished_rollouts, unit.finished_turns = (
            finished.completed_tasks,
            round(finished.avg_turns * finished.completed_tasks),
        )
        return _recalled(plan, finished)
    session.phase = "evaluation"
    begun_s, config = monotonic(), session.config
    speaker = _open_stream(session, plan)
    groups = plan_groups(stated, plan.id, episodes=config.eval_episodes, seed=config.seed)
    speaker.say(
        EvaluationCreated(
            kind=plan.kind,
            training_id=session.training_id,
            generation=None if session.training_id is None else session.generation,
            step=plan.step,
            model_path=session.learner.name,
            total_tasks=config.eval_episodes,
        )
    )
    speaker.say(EvaluationStarted(kind=plan.kind, started_at=session.clock()))
    source = RolloutSource(
        "baseline" if plan.kind == "baseline" else "eval",
        plan.id,
        plan.label,
        session.generation,
        batch=0,
        stream=speaker.subject,
    )

    def state_progress() -> None:
        speaker.say(
            EvaluationProgressed(
                kind=plan.kind,
                current_phase="rollout",
                current_task_index=unit.finished_rollouts,
                completed_tasks=unit.finished_rollouts,
                progress=session.tracker.of(unit),
            )
        )

    runner = GroupRunner(
        source,
        groups,
        settings=session.group_settings(is_eval=True),
        recalled=session.training_history.recall(source, groups, session.read_blob),
        say=speaker.say,
        make_engine=session.make_engine,
        tracker=session.tracker,
        unit=unit,
        on_progress=lambda: session.progressed(state_progress),
        clock=session.clock,
    )
    try:
        outcomes = runner.run()
    except LogBrokenError:
        raise
    except Exception as error:
        if plan.kind == "manual":  # one on schedule goes on when its training does
            reason = (
                "stopped on request"
                if isinstance(error, StopRequestedError)
                else f"{type(error).__name__}: {error}"[:2000]
            )
            runner.give_up(reason)
            speaker.say(_end_without_result(plan.kind, error, reason, session.clock()))
        raise
    if not any(outcome.results for outcome in outcomes):
        message = f"no episode of {plan.label} could be brought to its end"
        speaker.say(
            EvaluationFailed(kind=plan.kind, error_message=message, ended_at=session.clock())
        )
        raise CuaTrainError(message)
    payload = _finished(session, plan, outcomes, monotonic() - begun_s)
    speaker.say(payload)
    session.emitter.flush()
    session.emitter.forget_stream(speaker.subject)
    return _recalled(plan, payload)


def _end_without_result(kind: Kind, error: Exception, reason: str, now: datetime) -> Payload:
    if isinstance(error, StopRequestedError):
        return EvaluationCancelled(kind=kind, reason=reason, ended_at=now)
    return EvaluationFailed(kind=kind, error_message=reason, ended_at=now)


def _open_stream(session: Session, plan: EvaluationPlan) -> StreamSpeaker:
    subject = stream("evaluation", plan.id)
    speaker = StreamSpeaker(subject, session.training_id, session.emitter)
    if (history := session.training_history.of(subject)) is not None:
        session.emitter.resume_stream(subject, position=history.position, statuses=history.statuses)
        speaker.statuses.update(history.statuses)
    return speaker


def _finished(
    session: Session, plan: EvaluationPlan, outcomes: Sequence[GroupOutcome], seconds: float
) -> EvaluationFinished:
    results = [result for outcome in outcomes for result in outcome.results]
    successes = sum(result.success for result in results)
    success = successes / len(results)
    by_task = {
        outcome.plan.stated.task.task_id: statistics.fmean(
            float(result.success) for result in outcome.results
        )
        for outcome in outcomes
        if outcome.results
    }
    return EvaluationFinished(
        kind=plan.kind,
        completed_tasks=len(results),
        eval_time_s=seconds,
        success_rate=success,
        avg_reward=statistics.fmean(result.reward for result in results),
        avg_turns=statistics.fmean(result.num_turns for result in results),
        successful_tasks=successes,
        ended_at=session.clock(),
        progress=session.tracker.finished(),
        metrics={
            "standard_error": standard_error(success, len(results)),
            "by_task": by_task,
            "test/env/all/reward/total": statistics.fmean(result.reward for result in results),
            "test/env/all/turns_per_episode": statistics.fmean(
                result.num_turns for result in results
            ),
            "test/env/all/total_episodes": len(results),
        },
    )


def _recalled(plan: EvaluationPlan, finished: EvaluationFinished) -> EvaluationSummary:
    by_task = finished.metrics.get("by_task")
    return EvaluationSummary(
        label=plan.label,
        step=plan.step or 0,
        success=finished.success_rate,
        standard_error=standard_error(finished.success_rate, finished.completed_tasks),
        episodes=finished.completed_tasks,
        by_task=(
            {str(task): float(str(value)) for task, value in by_task.items()}
            if isinstance(by_task, dict)
            else {}
        ),
    )
