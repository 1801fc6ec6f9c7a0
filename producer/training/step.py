"""One step: plan -> collect -> select samples -> update -> finish."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import isnan
from time import monotonic
from typing import Literal

from producer.algorithms.advantages import ADVANTAGES, moved
from producer.errors import CuaTrainError
from producer.policy.learner import UpdateResult
from producer.rollouts.plan import (
    GroupOutcome,
    StatedTask,
)
from producer.training.batch_metrics import signal_metrics
from producer.training.groups import GroupRunner
from producer.training.metrics import staleness_metrics, step_metrics
from producer.training.progress import Unit
from producer.training.samples import (
    SelectedSample,
    control_seed,
    emit_samples,
    measured_samples,
    select_samples,
    with_token_means,
)
from producer.training.session import Session
from producer.training.step_plan import StepPlan, groups_of_refill, plan_step
from producer.training.updates import learning_rate_of, trajectories_of, update_settings
from schemas.step import (
    StepCollectionStarted,
    StepCreated,
    StepFailed,
    StepFinished,
    StepProgressed,
    StepRolloutsStarted,
    StepTrainingStarted,
)

SaveState = Callable[[StepFinished], None]
"""Saves the resume state, then emits the events that depend on it."""
OnCollected = Callable[[int, Sequence[GroupOutcome], dict[str, float]], None]
"""Called with the step number, its groups, and advantages by rollout name."""


NEXT_BASELINE = "optim/next_baseline"
"""Step metric: the moving baseline after the step, from which a resumed training starts."""


@dataclass(frozen=True, slots=True)
class CollectedStep:
    """A step whose rollouts have all ended."""

    plan: StepPlan
    outcomes: tuple[GroupOutcome, ...]
    rollouts_s: float
    ended_at: datetime


def collect_step(
    session: Session, number: int, tasks: Sequence[StatedTask], unit: Unit
) -> CollectedStep:
    """Run the rollouts of step `number`, reusing those that an earlier process finished.

    Raises CuaTrainError if every group failed.
    """
    begun_s = monotonic()
    return _collect(session, plan_step(session, number, tasks), tasks, unit, begun_s)


def train_step(
    session: Session,
    collected: CollectedStep,
    unit: Unit,
    save_state: SaveState,
    on_collected: OnCollected,
) -> StepFinished:
    """Complete a step: select samples, update, save the state and emit the events."""
    plan, outcomes = collected.plan, collected.outcomes
    version = session.learner.version
    groups = select_samples(
        session.config,
        outcomes,
        moving_baseline=session.moving_baseline,
        control_seed=control_seed(session.config, generation=session.generation, step=plan.number),
    )

    def record(groups: Sequence[Sequence[SelectedSample]]) -> None:
        emit_samples(session, plan.id, outcomes, groups, version=version)
        samples = [item for group in groups for item in group]
        defined = {
            sample.result.plan.name: sample.advantage
            for sample in samples
            if sample.advantage is not None
        }
        on_collected(plan.number, outcomes, defined)

    is_known_after = ADVANTAGES[session.config.advantage].learned is not None
    if not is_known_after:
        record(groups)
    samples = [item for group in groups for item in group]
    update = _update(session, collected, samples, unit)
    if is_known_after:
        groups = with_token_means(groups, measured_samples(samples), update.learned)
        samples = [item for group in groups for item in group]
        record(groups)
    finished = _finished(session, collected, samples, update, version)
    save_state(finished)
    return finished


def _collect(
    session: Session, plan: StepPlan, tasks: Sequence[StatedTask], unit: Unit, begun_s: float
) -> CollectedStep:
    stream, progress = session.stream, session.progress
    progress.phase = "rollout"
    stream.ensure(
        StepCreated(
            step_id=plan.id,
            generation=session.generation,
            step=plan.number,
            batch=plan.source.batch,
            learning_rate=learning_rate_of(session.config, plan.number),
            model_path=session.learner.name,
        )
    )
    stream.ensure(StepCollectionStarted(step_id=plan.id))
    stream.ensure(StepRolloutsStarted(step_id=plan.id, rollout_started_at=session.clock()))

    def on_progress() -> None:
        session.check_stop()
        progress.throttled(lambda: _emit_progress(session, plan, unit, "rollout_execution"))

    config = session.config
    outcomes: list[GroupOutcome] = []
    for rounds_left in range(config.refill_rounds, -1, -1):
        groups = plan.groups[len(outcomes) :]
        if not groups:
            break
        runner = GroupRunner(
            *(session, plan.source, groups),
            stream=stream,
            unit=unit,
            temperature=config.temperature,
            top_p=config.top_p,
            min_group_size=config.min_group_size,
            on_progress=on_progress,
            recalled=session.recalled(plan.source, groups),
        )
        outcomes += runner.run()
        if rounds_left:
            added = groups_of_refill(config, plan, tasks, outcomes)
            unit.num_rollouts += sum(len(group.seeds) for group in added)
            plan = replace(plan, groups=(*plan.groups, *added))
    # The update must not happen before the events of its rollouts are on disk.
    session.emitter.flush()
    if all(outcome.is_failed for outcome in outcomes):
        message = f"step {plan.number}: every group failed; {runner.first_failure()}"
        stream.emit(StepFailed(step_id=plan.id, error_message=message, ended_at=session.clock()))
        raise CuaTrainError(message)
    seconds = monotonic() - begun_s
    return CollectedStep(plan, tuple(outcomes), seconds, session.clock())


def _update(
    session: Session, collected: CollectedStep, samples: Sequence[SelectedSample], unit: Unit
) -> UpdateResult:
    plan = collected.plan
    session.progress.phase = "training"
    session.stream.ensure(
        StepTrainingStarted(
            step_id=plan.id,
            rollout_ended_at=collected.ended_at,
            training_started_at=session.clock(),
        )
    )
    session.progress.emit()
    result = session.learner.update(
        trajectories_of(session.config, samples),
        update_settings(session.config, generation=session.generation, step=plan.number),
    )
    unit.is_trained = True
    session.progress.phase = "checkpointing"
    _emit_progress(session, plan, unit, "checkpointing")
    return result


def _finished(
    session: Session,
    collected: CollectedStep,
    samples: Sequence[SelectedSample],
    update: UpdateResult,
    version: int,
) -> StepFinished:
    """Build the step's final event; `version` is the policy's before the update."""
    plan, outcomes, rollouts_s = collected.plan, collected.outcomes, collected.rollouts_s
    results = [sample.result for sample in samples if sample.drop_reason != "baseline"]
    rewards = [result.reward for result in results]
    return StepFinished(
        step_id=plan.id,
        training_ended_at=session.clock(),
        loss=update.loss,
        # With no measured tokens there is no mean.
        kl_divergence=update.kl_sample_train_v1 if update.num_measured_tokens else 0.0,
        policy_gradient_norm=None if isnan(update.gradient_norm) else update.gradient_norm,
        reward_mean=statistics.fmean(rewards),
        reward_std=statistics.pstdev(rewards),
        num_trajectories=len(results),
        num_tokens=sum(result.num_tokens for result in results),
        policy_version=session.learner.version,
        progress=session.progress.tracker.finished(),
        metrics={
            **step_metrics(session.config, plan.number, outcomes, update, rollouts_s=rollouts_s),
            **signal_metrics(session.config, outcomes, samples),
            **staleness_metrics(session.config, results, version),
            **_baseline_metrics(session, samples),
            "rollout_errors/leaked_devices": session.left_devices.num_leaked,
            "rollout_errors/late_devices": session.left_devices.num_late,
        },
    )


def next_baseline(finished: StepFinished) -> float:
    """The moving baseline after a step; 0 if the training has none."""
    after = finished.metrics.get(NEXT_BASELINE, 0.0)
    return float(after) if isinstance(after, int | float) else 0.0


def _baseline_metrics(session: Session, samples: Sequence[SelectedSample]) -> dict[str, float]:
    """The moving baseline used by this step, and the one for the next step."""
    config = session.config
    if config.baseline != "moving":
        return {}
    used = [sample.result.reward for sample in samples if sample.drop_reason is None]
    after = moved(session.moving_baseline, used, config.baseline_momentum)
    return {"optim/baseline": session.moving_baseline, NEXT_BASELINE: after}


def _emit_progress(
    session: Session,
    plan: StepPlan,
    unit: Unit,
    phase: Literal["rollout_execution", "checkpointing"],
) -> None:
    session.stream.emit(
        StepProgressed(
            step_id=plan.id,
            current_phase=phase,
            rollout_progress=unit.rollout_percent,
            training_progress=unit.update_percent,
            progress=session.progress.tracker.of(unit),
        )
    )
