"""One step: collect the groups, choose samples, update the policy, make the state safe, say so."""

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Literal
from uuid import UUID

from pydantic import JsonValue

from producer.algorithms.advantages import group_advantages, has_signal
from producer.errors import CuaTrainError
from producer.policy.learner import Trajectory, UpdateResult, UpdateSettings
from producer.rollouts.plan import GroupOutcome, GroupPlan, RolloutResult, RolloutSource, StatedTask
from producer.seeds import derived_seed
from producer.training.batches import batch_of_tasks
from producer.training.groups import GroupRunner
from producer.training.progress import Unit
from producer.training.session import Session
from schemas import ids
from schemas.base import Payload
from schemas.group import GroupDropped
from schemas.step import (
    Sample,
    SamplesChosen,
    StepCollectionStarted,
    StepCreated,
    StepFailed,
    StepFinished,
    StepProgressed,
    StepRolloutsStarted,
    StepTrainingStarted,
)

SaveState = Callable[[StepFinished], None]
"""Makes the step's state safe and states the facts that follow it."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The use of one scored rollout."""

    result: RolloutResult
    advantage: float
    drop_reason: str | None


def run_step(
    session: Session, step: int, stated: Sequence[StatedTask], unit: Unit, save_state: SaveState
) -> StepFinished:
    """Run step `step` (from 1) to its end; what an earlier process brought in is kept.

    CuaTrainError when no group is left.
    """
    config, training_id = session.config, session.training_id
    if training_id is None:
        message = "a step belongs to a training"
        raise CuaTrainError(message)
    say, begun_s = session.speaker.say, monotonic()
    session.phase = "rollout"
    step_id = ids.step_id(training_id, session.generation, step)
    source = RolloutSource(
        "step",
        step_id,
        f"step-{step}",
        session.generation,
        batch=step - 1,
        stream=session.speaker.subject,
    )
    groups = _plan_groups(session, step_id, step, stated)
    say(
        StepCreated(
            step_id=step_id,
            generation=session.generation,
            step=step,
            batch=step - 1,
            learning_rate=config.learning_rate,
            model_path=session.learner.name,
        )
    )
    say(StepCollectionStarted(step_id=step_id))
    recalled = session.training_history.recall(source, groups, session.read_blob)
    say(StepRolloutsStarted(step_id=step_id, rollout_started_at=session.clock()))
    outcomes = GroupRunner(
        source,
        groups,
        settings=session.group_settings(is_eval=False),
        recalled=recalled,
        say=say,
        make_engine=session.make_engine,
        tracker=session.tracker,
        unit=unit,
        on_progress=lambda: session.progressed(
            lambda: _state_progress(session, step_id, unit, "rollout_execution")
        ),
        clock=session.clock,
    ).run()
    # Nothing is trained on that is not on disk.
    session.emitter.flush()
    rollouts_s = monotonic() - begun_s
    if all(outcome.is_failed for outcome in outcomes):
        message = (
            f"step {step}: no group could be brought to its end; see the rollouts' error_message"
        )
        say(StepFailed(step_id=step_id, error_message=message, ended_at=session.clock()))
        raise CuaTrainError(message)
    chosen = _choose(session, training_id, step_id, outcomes)
    session.phase = "training"
    now = session.clock()
    say(StepTrainingStarted(step_id=step_id, rollout_ended_at=now, training_started_at=now))
    session.state_progress()
    update = session.learner.update(
        [
            Trajectory(one.result.plan.task, one.result.turns, one.advantage)
            for one in chosen
            if one.drop_reason is None and one.result.turns
        ],
        UpdateSettings(
            loss=config.loss_fn,
            learning_rate=config.learning_rate,
            num_substeps=config.num_substeps,
            temperature=config.temperature,
            kl_penalty_coef=config.kl_penalty_coef,
            seed=derived_seed(config.seed, "update", session.generation, step),
        ),
    )
    unit.is_trained = True
    session.phase = "checkpointing"
    _state_progress(session, step_id, unit, "checkpointing")
    results = [one.result for one in chosen]
    finished = StepFinished(
        step_id=step_id,
        training_ended_at=session.clock(),
        loss=update.loss,
        # Without a trained token there is no mean; nothing was sampled that training saw
        # differently.
        kl_divergence=update.kl_sample_train_v1 if update.num_tokens else 0.0,
        policy_gradient_norm=update.gradient_norm,
        reward_mean=statistics.fmean(result.reward for result in results),
        reward_std=statistics.pstdev([result.reward for result in results]),
        num_trajectories=len(results),
        num_tokens=sum(result.num_tokens for result in results),
        policy_version=session.learner.version,
        progress=session.tracker.finished(),
        metrics=_metrics(session, step, outcomes, results, update, rollouts_s),
    )
    save_state(finished)
    return finished


def _plan_groups(
    session: Session, step_id: UUID, step: int, stated: Sequence[StatedTask]
) -> list[GroupPlan]:
    config = session.config
    by_id = {one.task.task_id: one for one in stated}
    tasks = batch_of_tasks(
        [one.task for one in stated],
        seed=config.seed,
        batch=step - 1,
        groups_per_batch=config.groups_per_batch,
    )
    return [
        GroupPlan(
            num=num,
            id=ids.group_id(step_id, num),
            stated=by_id[task.task_id],
            # One seed for the whole group: its rollouts are compared, so they begin alike.
            seeds=(derived_seed(config.seed, "training", session.generation, step, num),)
            * config.group_size,
        )
        for num, task in enumerate(tasks)
    ]


def _choose(
    session: Session, training_id: UUID, step_id: UUID, outcomes: Sequence[GroupOutcome]
) -> list[_Chosen]:
    """Advantages within each group; groups of one reward teach nothing and are dropped.

    States it where it was not yet.
    """
    stated = session.training_history.samples_chosen(training_id, step_id)
    dropped = session.training_history.groups_dropped(training_id)
    chosen: list[_Chosen] = []
    for outcome in outcomes:
        rewards = [result.reward for result in outcome.results]
        reason = (
            "group_failed"
            if outcome.is_failed
            else None
            if has_signal(rewards)
            else "zero_variance"
        )
        advantages = group_advantages(rewards, divide_by_std=session.config.advantage_by_std)
        group = [
            _Chosen(result, advantage, reason)
            for result, advantage in zip(outcome.results, advantages, strict=True)
        ]
        chosen += group
        if group and outcome.plan.id not in stated:
            session.speaker.say(_samples(session, step_id, group))
        if reason == "zero_variance" and outcome.plan.id not in dropped:
            session.speaker.say(GroupDropped(group_id=outcome.plan.id, reason="zero_variance"))
    return chosen


def _samples(session: Session, step_id: UUID, group: Sequence[_Chosen]) -> Payload:
    return SamplesChosen(
        step_id=step_id,
        samples=tuple(
            Sample(
                rollout_id=one.result.plan.id,
                group_id=one.result.plan.group_id,
                advantage=one.advantage,
                reward=one.result.reward,
                policy_version=one.result.policy_version,
                staleness=max(0, session.learner.version - one.result.policy_version),
                num_tokens=one.result.num_tokens,
                used=one.drop_reason is None,
                drop_reason=one.drop_reason,
            )
            for one in group
        ),
    )


def _state_progress(
    session: Session,
    step_id: UUID,
    unit: Unit,
    phase: Literal["rollout_execution", "checkpointing"],
) -> None:
    session.speaker.say(
        StepProgressed(
            step_id=step_id,
            current_phase=phase,
            rollout_progress=unit.rollout_percent,
            training_progress=100.0 if unit.is_trained else 0.0,
            progress=session.tracker.of(unit),
        )
    )


def _metrics(
    session: Session,
    step: int,
    outcomes: Sequence[GroupOutcome],
    results: Sequence[RolloutResult],
    update: UpdateResult,
    rollouts_s: float,
) -> dict[str, JsonValue]:
    """Under tinker-cookbook's names."""
    kinds = Counter(_kind(outcome) for outcome in outcomes)
    turns = sum(result.num_turns for result in results)
    return {
        "progress/batch": step - 1,
        "progress/done_frac": step / session.config.num_steps,
        "optim/lr": session.config.learning_rate,
        "optim/kl_sample_train_v1": update.kl_sample_train_v1 if update.num_tokens else None,
        "optim/kl_sample_train_v2": update.kl_sample_train_v2 if update.num_tokens else None,
        "optim/entropy": update.entropy if update.num_tokens else None,
        "optim/num_tokens": update.num_tokens,
        "env/all/reward/total": statistics.fmean(result.reward for result in results),
        "env/all/success": statistics.fmean(float(result.success) for result in results),
        "env/all/ac_tokens_per_turn": sum(result.num_tokens for result in results) / max(turns, 1),
        "env/all/turns_per_episode": turns / len(results),
        "env/all/total_episodes": len(results),
        "env/all/total_turns": turns,
        "env/all/by_group/frac_mixed": kinds["mixed"] / len(outcomes),
        "env/all/by_group/frac_all_good": kinds["good"] / len(outcomes),
        "env/all/by_group/frac_all_bad": kinds["bad"] / len(outcomes),
        "rollout_errors/groups_skipped": kinds["failed"],
        "time/rollout": rollouts_s,
        "time/train": update.seconds,
    }


def _kind(outcome: GroupOutcome) -> str:
    if outcome.is_failed:
        return "failed"
    successes = sum(result.success for result in outcome.results)
    return "good" if successes == len(outcome.results) else "mixed" if successes else "bad"
