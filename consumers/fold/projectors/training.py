"""A training's row, its checkpoints, and steps and groups superseded by a newer generation."""

from collections.abc import Sequence
from typing import assert_never

from consumers.fold.projectors.projector import (
    EventContext,
    check_id,
    progress_columns,
)
from consumers.fold.rows import Insert, Operation, Row, Update
from schemas.base import Payload
from schemas.checkpoint import CheckpointSaved
from schemas.ids import training_id
from schemas.training import (
    HeartbeatSent,
    Recipe,
    StepSuperseded,
    TrainingCancelled,
    TrainingCompleted,
    TrainingCreated,
    TrainingFailed,
    TrainingInitializing,
    TrainingPaused,
    TrainingProgressed,
    TrainingResumed,
    TrainingStarted,
)

TrainingEvent = (
    TrainingCreated
    | TrainingInitializing
    | TrainingStarted
    | TrainingProgressed
    | HeartbeatSent
    | TrainingPaused
    | TrainingResumed
    | TrainingCompleted
    | TrainingFailed
    | TrainingCancelled
)


class TrainingProjector:
    """Events of the training itself."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row."""
        assert isinstance(payload, TrainingEvent)  # noqa: S101  # the registry names the class
        if isinstance(payload, TrainingCreated):
            return [Insert("training", _created(payload, context))]
        return [context.change(payload, _changed(payload, context))]


def _recipe_columns(recipe: Recipe) -> Row:
    return {name: getattr(recipe, name) for name in Recipe.model_fields}


def _created(payload: TrainingCreated, context: EventContext) -> Row:
    check_id(f"training {payload.run_name!r}", context.owner, training_id(payload.run_name))
    return _recipe_columns(payload.recipe) | {
        "id": context.owner,
        "run_name": payload.run_name,
        "kind": payload.kind,
        "generation": 0,
        "current_step": 0,
        "total_steps": payload.total_steps,
        "config_json": payload.config,
        "status": payload.STATUS,
        "progress_percent": 0.0,
        "current_phase": "initialization",
        "created_at": context.time,
        "updated_at": context.time,
    }


def _changed(payload: TrainingEvent, context: EventContext) -> Row:  # noqa: C901, PLR0911  # one case per event
    match payload:
        case TrainingInitializing():
            return {"current_phase": "initialization", "status_message": payload.status_message}
        case TrainingStarted():
            return {"current_step": payload.current_step, "status_message": payload.status_message}
        case TrainingProgressed():
            return progress_columns(payload.progress) | {
                "current_phase": payload.current_phase,
                "current_step": payload.current_step,
                "status_message": payload.status_message,
            }
        case HeartbeatSent():
            return {"last_heartbeat": context.time}
        case TrainingPaused():
            return {"status_message": payload.status_message}
        case TrainingResumed():
            return _recipe_columns(payload.recipe) | {
                "generation": payload.generation,
                "current_step": payload.current_step,
                "total_steps": payload.total_steps,
                "config_json": payload.config,
                "current_phase": "initialization",
                "status_message": payload.status_message,
                "error_message": None,
                "end_time": None,
            }
        case TrainingCompleted():
            return progress_columns(payload.progress) | {
                "current_step": payload.current_step,
                "end_time": payload.ended_at,
                "status_message": payload.status_message,
            }
        case TrainingFailed():
            return {"error_message": payload.error_message, "end_time": payload.ended_at}
        case TrainingCancelled():
            return {"status_message": payload.status_message, "end_time": payload.ended_at}
        case TrainingCreated():
            raise AssertionError
        case _:
            assert_never(payload)


class SupersedingProjector:
    """StepSuperseded: a step of an older generation and its groups are marked, never deleted."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """The rows of the step and its groups."""
        assert isinstance(payload, StepSuperseded)  # noqa: S101  # the registry names the class
        values: Row = {"superseded": True, "updated_at": context.time}
        return [
            Update("step", str(payload.step_id), values),
            *(Update("group", str(group), dict(values)) for group in payload.group_ids),
        ]


class CheckpointProjector:
    """CheckpointSaved."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """The training's row, and that of the step that the checkpoint was saved after."""
        assert isinstance(payload, CheckpointSaved)  # noqa: S101  # the registry names the class
        values: Row = {"checkpoint_path": payload.path, "updated_at": context.time}
        operations: list[Operation] = [Update("training", context.owner, values)]
        if payload.step_id is not None:
            operations.append(Update("step", str(payload.step_id), dict(values)))
        return operations
