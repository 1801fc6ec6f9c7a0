"""What a training seldom records: failures, cancellations, resumes, superseding, second opinions.

Every type that an ordinary history may lack is told here, each time.
"""

from typing import Literal
from uuid import UUID

from schemas import ids
from schemas.catalogue import stream
from schemas.checkpoint import CheckpointSaved
from schemas.entry import EntryContent, EntryStated
from schemas.environment import (
    EnvironmentCreationStarted,
    EnvironmentFailed,
    EnvironmentLeaked,
    EnvironmentReleased,
    EnvironmentRequested,
)
from schemas.evaluation import (
    EvaluationCancelled,
    EvaluationCreated,
    EvaluationFailed,
    EvaluationFinished,
    EvaluationProgressed,
    EvaluationStarted,
    EvaluationSuperseded,
)
from schemas.group import GroupDropped, GroupFailed, GroupProgressed, GroupStarted
from schemas.rollout import (
    RolloutCancelled,
    RolloutCreated,
    RolloutEnvironmentRequested,
    RolloutFailed,
    RolloutStarted,
)
from schemas.scoring import RolloutScored, ScoringCreated, ScoringFinished
from schemas.step import StepCreated, StepFailed
from schemas.task import TaskStated, ValidatorStated
from schemas.training import (
    HeartbeatSent,
    Recipe,
    StepSuperseded,
    TrainingCancelled,
    TrainingFailed,
    TrainingPaused,
    TrainingResumed,
    TrainingStarted,
)
from schemas.validation import ValidationRecorded
from tests.reference_fold.drawn_values import named
from tests.reference_fold.rollout_history import RolloutHistory
from tests.reference_fold.writers import StreamWriter

End = Literal["failed", "cancelled", "superseded"]
ENDS: tuple[End, ...] = ("failed", "cancelled", "superseded")
FAR = 900
"""Number of the step that is retrained; no history has as many."""


def tell_rare(history: RolloutHistory, recipe: Recipe) -> None:
    """All of it, by the history's own writers; the training is running before and after."""
    trainer = history.trainer
    trainer.emit(TrainingPaused(status_message="waiting"))
    trainer.emit(TrainingStarted(current_step=0))
    step = _step_that_fails(history)
    trainer.emit(TrainingFailed(error_message="disk full", ended_at=history.now))
    _resume(history, recipe)
    groups = tuple(ids.group_id(step, number) for number in range(3))
    trainer.emit(StepSuperseded(step_id=step, group_ids=groups))
    trainer.emit(TrainingCancelled(status_message="Ctrl-C", ended_at=history.now))
    _resume(history, recipe)
    for number, end in enumerate(ENDS):
        _evaluation(history, number, end)
    for index in range(2):
        _rollout_that_fails(history, step, index, is_cancelled=index == 1)
    _baseline_of_this_generation(history)
    _score_again(history)
    _tasks(history)
    trainer.emit(HeartbeatSent())


def _resume(history: RolloutHistory, recipe: Recipe) -> None:
    history.trainer.take_over()
    history.generation += 1
    history.trainer.emit(
        TrainingResumed(
            generation=history.generation,
            current_step=0,
            total_steps=9,
            recipe=recipe,
            config={"again": True},
        )
    )
    history.trainer.emit(TrainingStarted(current_step=0))


def _step_that_fails(history: RolloutHistory) -> UUID:
    emit = history.trainer.emit
    step = ids.step_id(history.training, history.generation, FAR)
    emit(
        StepCreated(
            step_id=step,
            generation=history.generation,
            step=FAR,
            batch=0,
            learning_rate=1e-3,
            model_path=None,
        )
    )
    for number in range(3):
        group = history.create_group(history.trainer, "step", step, number)
        emit(GroupStarted(group_id=group, started_at=history.now))
        emit(GroupProgressed(group_id=group, completed_rollouts=0, progress=history.progress(1.0)))
        if number:
            emit(GroupDropped(group_id=group, reason="stale"))
        else:
            emit(
                GroupFailed(
                    group_id=group,
                    completed_rollouts=0,
                    error_message="no rollout",
                    ended_at=history.now,
                )
            )
    emit(
        CheckpointSaved(
            step_id=step,
            generation=history.generation,
            step=FAR,
            path="/elsewhere",
            policy_version=1,
            adapter_sha256="b" * 64,
        )
    )
    emit(StepFailed(step_id=step, error_message="out of memory", ended_at=history.now))
    return step


def _evaluation(history: RolloutHistory, number: int, end: End) -> None:
    owner = ids.manual_eval_id(named("nonce", history.run_name, number))
    writer = history.writer("evaluation", owner)
    writer.emit(
        EvaluationCreated(
            kind="manual",
            training_id=history.training,
            generation=None,
            step=None,
            model_path="m",
            total_tasks=1,
        )
    )
    group = history.create_group(writer, "eval", owner, 0)
    writer.emit(EvaluationStarted(kind="manual", started_at=history.now))
    writer.emit(
        EvaluationProgressed(
            kind="manual",
            current_phase="rollout",
            current_task_index=0,
            completed_tasks=0,
            progress=history.progress(1.0),
        )
    )
    match end:
        case "failed":
            writer.emit(EvaluationFailed(kind="manual", error_message="x", ended_at=history.now))
        case "cancelled":
            writer.emit(EvaluationCancelled(kind="manual", reason="x", ended_at=history.now))
        case "superseded":
            writer.emit(
                EvaluationFinished(
                    kind="manual",
                    completed_tasks=1,
                    eval_time_s=1.0,
                    success_rate=0.0,
                    avg_reward=0.0,
                    avg_turns=1.0,
                    successful_tasks=0,
                    ended_at=history.now,
                    progress=history.progress(100.0),
                    metrics={},
                )
            )
            writer.emit(EvaluationSuperseded(kind="manual", group_ids=(group,)))


def _baseline_of_this_generation(history: RolloutHistory) -> None:
    owner = ids.baseline_id(history.training, history.generation)
    history.writer("evaluation", owner).emit(
        EvaluationCreated(
            kind="baseline",
            training_id=history.training,
            generation=history.generation,
            step=0,
            model_path=None,
            total_tasks=1,
        )
    )


def _tasks(history: RolloutHistory) -> None:
    """Tasks and entries of this training alone; what they say is drawn."""
    nobody = named("nobody")
    for number in range(2):
        history.trainer.emit(
            TaskStated(
                id=nobody,
                task_id=f"{history.run_name}_{number}",
                definition_hash="",
                name="",
                description="",
                difficulty=None,
                category=None,
                max_steps=1,
                validation_type=None,
                validation_query=None,
                expected_result=None,
                source_type="custom",
            )
        )
        history.trainer.emit(
            ValidatorStated(
                id=nobody,
                task_id=named("task", history.run_name, number),
                validator_type="shell",
                validation_query="",
                validation_method="",
                config={},
            )
        )
        history.trainer.emit(
            EntryStated(
                id=nobody,
                task_id=named("task", history.run_name, number),
                content_hash="",
                content=EntryContent(kind="dbbench", entry_id="", instruction=""),
            )
        )


def _rollout_that_fails(
    history: RolloutHistory, step: UUID, index: int, *, is_cancelled: bool
) -> None:
    name = ids.rollout_name(history.run_name, history.generation, "rare", 0, index, 0)
    owner = ids.rollout_id(name)
    device = ids.environment_id(owner)
    writer, maker = history.writer("rollout", owner), history.writer("environment", device)
    writer.emit(
        RolloutCreated(
            rollout_id=name,
            source_type="step",
            source_id=step,
            group_id=ids.group_id(step, 0),
            batch=0,
            group_num=0,
            env_index=index,
            attempt=0,
            task_id=history.tasks[0],
            model_path=None,
            policy_version=0,
            is_eval=False,
            max_turns=3,
            temperature=1.0,
            seed=0,
        )
    )
    maker.emit(EnvironmentRequested(env_type="android_sim", box_type="android", config={}))
    writer.emit(RolloutEnvironmentRequested(env_id=device))
    maker.emit(EnvironmentCreationStarted())
    if is_cancelled:
        maker.emit(EnvironmentLeaked(error_message="it hangs", leaked_at=history.now))
        maker.emit(EnvironmentReleased(released_at=history.now))
    else:
        maker.emit(EnvironmentFailed(error_message="no device", terminated_at=history.now))
    if is_cancelled:
        writer.emit(RolloutStarted(agent_init_time_s=0.5, task_started_at=history.now))
        writer.emit(RolloutCancelled(reason="its process died", ended_at=history.now))
    else:
        writer.emit(
            RolloutFailed(
                error_type="environment",
                error_message="no device",
                num_turns=0,
                ended_at=history.now,
            )
        )


def score_rollouts(history: RolloutHistory) -> None:
    """New rewards of every rollout, in a stream of its own; it draws nothing."""
    rollouts = [event.subject for event in history.events if event.subject.startswith("rollout/")]
    owner = named("scoring", history.run_name, "rewards")
    writer = StreamWriter(history, stream("scoring", owner))
    scored = sorted(set(rollouts))
    writer.emit(
        ScoringCreated(
            training_id=history.training, reward_name="efficiency", total_rollouts=len(scored)
        )
    )
    for number, subject in enumerate(scored):
        writer.emit(
            RolloutScored(
                rollout_id=UUID(subject.partition("/")[2]),
                reward=None if number == 1 else 0.25 * number,
                success=None if number == 1 else number % 2 == 0,
                error_message="no verdict" if number == 1 else None,
            )
        )
    writer.emit(
        ScoringFinished(
            scored_rollouts=len(scored) - 1,
            failed_rollouts=1,
            reward_mean=0.5,
            success_rate=0.5,
            ended_at=history.now,
        )
    )


def _score_again(history: RolloutHistory) -> None:
    """A person's opinion on a rollout, in a stream of its own."""
    rollouts = [event.subject for event in history.events if event.subject.startswith("rollout/")]
    owner = named("scoring", history.run_name)
    writer = StreamWriter(history, stream("scoring", owner))
    for number in range(2):
        writer.emit(
            ValidationRecorded(
                rollout_id=UUID(history.random.choice(rollouts).partition("/")[2]),
                validator_id=named("validator", history.run_name, number),
                validated_at=history.now,
                validation_query="a person looked",
                expected_result=None,
                actual_result=None,
                success=False,
                execution_time_s=0.0,
                rank=1,
            )
        )
