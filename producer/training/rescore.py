"""Scores a training's finished rollouts again from the log, with another reward or judge.

The new scores are events on their own stream; the training's records are not changed.
"""

import logging
import statistics
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from pydantic import JsonValue

from producer.blobs import open_blobs
from producer.console import progress_bar
from producer.emit import Emitter
from producer.emit.emitter import now_utc
from producer.errors import NotFoundError, StopRequestedError
from producer.log.stream_history import StreamHistory
from producer.resume.training_history import TrainingHistory, read_training_history
from producer.rewards import Reward, RewardError, outcome_of, score
from producer.rollouts.episode import NUM_JUDGED_SCREENS
from producer.task import RECORDED, Task
from producer.training.kept_trainings import check_known, unknown_training
from producer.validators.judges import (
    AGENT,
    AskModel,
    JudgeFailedError,
    agent_report,
)
from producer.validators.verdict import Evidence
from schemas import ids
from schemas.base import Payload
from schemas.catalogue import stream, stream_kind
from schemas.group import GroupCreated
from schemas.installation import Installation
from schemas.rollout import RolloutCreated, RolloutFinished
from schemas.scoring import RolloutScored, ScoringCreated, ScoringFinished
from schemas.task import TaskStated
from schemas.turn import TurnTaken

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """How rollouts are scored."""

    reward_name: str
    reward: Reward
    judge: str | None = None
    """`agent`, or the URL of an endpoint; None uses the recorded verdicts."""
    ask_model: AskModel | None = None
    """Asks the endpoint."""
    turn_cost: float = 0.0
    parse_error_cost: float = 0.0
    config: dict[str, JsonValue]
    """The other settings that determine the scores, for the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """The last line of `cua-train rescore --json`."""

    training_name: str
    scoring_id: str
    rollouts: int
    failed: int
    """Number of rollouts that could not be scored, such as those of tasks without a judge."""
    reward_mean_before: float | None
    """Mean recorded reward of the scored rollouts; None if there are none."""
    reward_mean: float | None
    success_rate_before: float | None
    success_rate: float | None


@dataclass(frozen=True, slots=True)
class _Rollout:
    created: RolloutCreated
    finished: RolloutFinished
    history: StreamHistory
    task: TaskStated | None


def rescore(
    installation: Installation,
    training_name: str,
    scorer: Scorer,
    *,
    clock: Callable[[], datetime] = now_utc,
    stop: threading.Event,
) -> Rescored:
    """Score every finished rollout of the training's groups; returns when all is in the log.

    Raises NotFoundError if the log lacks the training or has no finished rollout of it,
    UnreachableError, and StopRequestedError.
    """
    check_known(installation, training_name)
    training_id = ids.training_id(training_name)
    with Emitter.open(installation, clock=clock, stop=stop) as emitter:
        history = read_training_history(emitter.log, training_id, start={}, since={})
        if not history.own.exists:
            raise unknown_training(installation, training_name)
        rollouts = sorted(
            _finished_rollouts(history),
            key=lambda finished_rollout: finished_rollout.created.rollout_id,
        )
        if not rollouts:
            message = f"training {training_name!r} has no finished rollout in the log"
            raise NotFoundError(message)
        scoring_id = ids.uuid7(clock())
        writer = emitter.stream(stream("scoring", scoring_id), training_id=training_id)
        writer.emit(
            ScoringCreated(
                training_id=training_id,
                reward_name=scorer.reward_name,
                judge=scorer.judge,
                config=scorer.config,
                total_rollouts=len(rollouts),
            )
        )
        read_blob = open_blobs(installation).get
        scored: list[tuple[_Rollout, RolloutScored]] = []
        with progress_bar("scoring again", len(rollouts)) as bar:
            for rollout in rollouts:
                if stop.is_set():
                    raise StopRequestedError
                result = _score(rollout, scorer, read_blob)
                writer.emit(result)
                scored.append((rollout, result))
                bar.advance()
        finished = _finished(scored, clock())
        writer.emit(finished)
        emitter.flush()
    return _summary(training_name, scoring_id, scored, finished)


def _finished_rollouts(history: TrainingHistory) -> Iterator[_Rollout]:
    """Finished rollouts except greedy baselines (remax), which do not count in their groups."""
    tasks: dict[UUID, TaskStated] = {}
    num_planned: dict[UUID, int] = {}
    for subject in history.streams:
        if stream_kind(subject) in {"training", "evaluation"}:
            for stated in history.payloads_of(subject, Payload):
                if isinstance(stated, TaskStated):
                    tasks[stated.id] = stated
                elif isinstance(stated, GroupCreated):
                    num_planned[stated.group_id] = stated.num_rollouts
    for subject, one in history.streams.items():
        if stream_kind(subject) != "rollout" or not one.events or one.is_dropped:
            continue
        created, finished = one.events[0].payload, one.events[-1].payload
        if isinstance(created, RolloutCreated) and isinstance(finished, RolloutFinished):
            if created.env_index >= num_planned.get(created.group_id, created.env_index + 1):
                continue
            yield _Rollout(created, finished, one, tasks.get(created.task_id))


def _score(rollout: _Rollout, scorer: Scorer, read_blob: Callable[[str], bytes]) -> RolloutScored:
    rollout_id = UUID(rollout.history.subject.partition("/")[2])
    success: bool | None = None
    try:
        success, details = _verdict(rollout, scorer, read_blob)
        outcome = outcome_of(
            rollout.finished, max_turns=rollout.created.max_turns, task_id=_task_id(rollout)
        )
        reward = score(
            scorer.reward,
            replace(outcome, success=success),
            turn_cost=scorer.turn_cost,
            parse_error_cost=scorer.parse_error_cost,
        )
    except (RewardError, JudgeFailedError, NotFoundError) as error:
        return RolloutScored(
            rollout_id=rollout_id,
            reward=None,
            success=success if scorer.judge is None else None,
            error_message=str(error),
        )
    return RolloutScored(rollout_id=rollout_id, reward=reward, success=success, details=details)


def _is_unjudged(rollout: _Rollout) -> bool:
    """Whether nobody judged the episode. Other trainers (`record`) give success by themselves."""
    task = rollout.task
    return task is not None and task.validation_type is None and task.source_type != RECORDED


def _verdict(
    rollout: _Rollout, scorer: Scorer, read_blob: Callable[[str], bytes]
) -> tuple[bool, dict[str, JsonValue]]:
    """The scorer's verdict, or the recorded one. Raises as `_judge`."""
    if scorer.judge is not None:
        return _judge(rollout, scorer, read_blob)
    if _is_unjudged(rollout):
        message = "its task has no judge, so there is no verdict to score"
        raise JudgeFailedError(message)
    return rollout.finished.task_success, {}


def _judge(
    rollout: _Rollout, scorer: Scorer, read_blob: Callable[[str], bytes]
) -> tuple[bool, dict[str, JsonValue]]:
    """Raises JudgeFailedError, or NotFoundError if the blob store lacks a screenshot."""
    payloads = (event.payload for event in rollout.history.events)
    turns = [payload for payload in payloads if isinstance(payload, TurnTaken)]
    actions = tuple(call for turn in turns for call in turn.actions)
    if scorer.judge == AGENT:
        return agent_report(Evidence((), actions)).success, {}
    if rollout.task is None or scorer.ask_model is None:
        message = "its task is not in the log"
        raise JudgeFailedError(message)
    screenshots = [turn.screenshot_before for turn in turns if turn.screenshot_before is not None]
    if turns and turns[-1].screenshot_after is not None:
        screenshots.append(turns[-1].screenshot_after)
    screens = tuple(read_blob(ref) for ref in screenshots[-NUM_JUDGED_SCREENS:])
    verdict = scorer.ask_model(_judged_task(rollout.task, scorer), Evidence(screens, actions))
    return verdict.success, verdict.details


def _judged_task(task: TaskStated, scorer: Scorer) -> Task:
    model = scorer.config.get("judge_model")
    return Task(
        task_id=task.task_id,
        name=task.name,
        description=task.description,
        difficulty=None,
        category=task.category,
        max_steps=task.max_steps,
        validation_query=None,
        expected_result=None,
        judge=scorer.judge,
        judge_model=model if isinstance(model, str) else None,
    )


def _task_id(rollout: _Rollout) -> str:
    return "" if rollout.task is None else rollout.task.task_id


def _finished(scored: list[tuple[_Rollout, RolloutScored]], ended_at: datetime) -> ScoringFinished:
    rewards = [one.reward for _, one in scored if one.reward is not None]
    verdicts = [one.success for _, one in scored if one.success is not None]
    return ScoringFinished(
        scored_rollouts=len(rewards),
        failed_rollouts=len(scored) - len(rewards),
        reward_mean=statistics.fmean(rewards) if rewards else None,
        success_rate=statistics.fmean(map(float, verdicts)) if verdicts else None,
        ended_at=ended_at,
    )


def _summary(
    training_name: str,
    scoring_id: UUID,
    scored: list[tuple[_Rollout, RolloutScored]],
    finished: ScoringFinished,
) -> Rescored:
    before = [rollout.finished for rollout, one in scored if one.reward is not None]
    verdicts = [
        rollout.finished.task_success
        for rollout, one in scored
        if one.reward is not None and not _is_unjudged(rollout)
    ]
    return Rescored(
        training_name=training_name,
        scoring_id=str(scoring_id),
        rollouts=len(scored),
        failed=finished.failed_rollouts,
        reward_mean_before=statistics.fmean(item.reward for item in before) if before else None,
        reward_mean=finished.reward_mean,
        success_rate_before=statistics.fmean(map(float, verdicts)) if verdicts else None,
        success_rate=finished.success_rate,
    )
