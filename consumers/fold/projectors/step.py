"""A step's row and its samples, from the training's stream."""

from collections.abc import Sequence
from typing import assert_never
from uuid import UUID

from consumers.fold.projectors.projector import EventContext, check_id, progress_columns
from consumers.fold.rows import Insert, Operation, Row, row_id
from schemas.base import Payload
from schemas.ids import step_id
from schemas.step import (
    SamplesChosen,
    StepCollectionStarted,
    StepCreated,
    StepFailed,
    StepFinished,
    StepProgressed,
    StepRolloutsStarted,
    StepTrainingStarted,
)

StepEvent = (
    StepCreated
    | StepCollectionStarted
    | StepRolloutsStarted
    | StepTrainingStarted
    | StepProgressed
    | StepFinished
    | StepFailed
)


class StepProjector:
    """Events of a step itself."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row."""
        assert isinstance(payload, StepEvent)  # noqa: S101  # the registry names the class
        if isinstance(payload, StepCreated):
            return [Insert("step", _created(payload, context))]
        return [context.change(payload, _changed(payload))]


def _created(payload: StepCreated, context: EventContext) -> Row:
    check_id(
        f"step {payload.step}",
        payload.step_id,
        step_id(UUID(context.owner), payload.generation, payload.step),
    )
    return {
        "id": payload.step_id,
        "training_id": context.owner,
        "generation": payload.generation,
        "step": payload.step,
        "superseded": False,
        "batch": payload.batch,
        "rollout_progress": 0.0,
        "training_progress": 0.0,
        "learning_rate": payload.learning_rate,
        "model_path": payload.model_path,
        "status": payload.STATUS,
        "progress_percent": 0.0,
        "created_at": context.time,
        "updated_at": context.time,
    }


def _changed(payload: StepEvent) -> Row:
    match payload:
        case StepCollectionStarted():
            return {"current_phase": "rollout_collection"}
        case StepRolloutsStarted():
            return {
                "current_phase": "rollout_execution",
                "rollout_start_time": payload.rollout_started_at,
            }
        case StepTrainingStarted():
            return {
                "current_phase": "training",
                "rollout_progress": 100.0,
                "rollout_end_time": payload.rollout_ended_at,
                "training_start_time": payload.training_started_at,
            }
        case StepProgressed():
            return progress_columns(payload.progress) | {
                "current_phase": payload.current_phase,
                "rollout_progress": payload.rollout_progress,
                "training_progress": payload.training_progress,
            }
        case StepFinished():
            return progress_columns(payload.progress) | {
                "rollout_progress": 100.0,
                "training_progress": 100.0,
                "training_end_time": payload.training_ended_at,
                "end_time": payload.training_ended_at,
                "loss": payload.loss,
                "kl_divergence": payload.kl_divergence,
                "policy_gradient_norm": payload.policy_gradient_norm,
                "reward_mean": payload.reward_mean,
                "reward_std": payload.reward_std,
                "num_trajectories": payload.num_trajectories,
                "num_tokens": payload.num_tokens,
                "policy_version": payload.policy_version,
                "metrics_json": payload.metrics,
            }
        case StepFailed():
            return {"error_message": payload.error_message, "end_time": payload.ended_at}
        case StepCreated():
            raise AssertionError
        case _:
            assert_never(payload)


class SampleProjector:
    """SamplesChosen: which rollouts trained a step."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row per sample."""
        assert isinstance(payload, SamplesChosen)  # noqa: S101  # the registry names the class
        step = str(payload.step_id)
        return [
            Insert(
                "sample",
                {
                    "id": row_id("sample", step, str(sample.rollout_id)),
                    "step_id": step,
                    "group_id": sample.group_id,
                    "rollout_id": sample.rollout_id,
                    "advantage": sample.advantage,
                    "reward": sample.reward,
                    "policy_version": sample.policy_version,
                    "staleness": sample.staleness,
                    "num_tokens": sample.num_tokens,
                    "used": sample.used,
                    "drop_reason": sample.drop_reason,
                    "created_at": context.time,
                },
            )
            for sample in payload.samples
        ]
