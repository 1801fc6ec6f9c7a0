"""A rollout's row. Its turns are projected by `turn`."""

from collections.abc import Sequence
from typing import assert_never

from consumers.fold.projectors.projector import (
    EventContext,
    check_id,
    source_columns,
)
from consumers.fold.rows import Insert, Operation, Row
from schemas.base import Payload
from schemas.ids import rollout_id
from schemas.rollout import (
    RolloutAgentInitialized,
    RolloutCancelled,
    RolloutCreated,
    RolloutEnvironmentRequested,
    RolloutFailed,
    RolloutFinished,
    RolloutPhaseEntered,
    RolloutStarted,
)

RolloutEvent = (
    RolloutCreated
    | RolloutEnvironmentRequested
    | RolloutAgentInitialized
    | RolloutStarted
    | RolloutPhaseEntered
    | RolloutFinished
    | RolloutFailed
    | RolloutCancelled
)


class RolloutProjector:
    """Events of the rollout itself."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row."""
        assert isinstance(payload, RolloutEvent)  # noqa: S101  # the registry names the class
        if isinstance(payload, RolloutCreated):
            return [Insert("rollout", _created(payload, context))]
        return [context.change(payload, _changed(payload, context))]


def _created(payload: RolloutCreated, context: EventContext) -> Row:
    check_id(f"rollout {payload.rollout_id!r}", context.owner, rollout_id(payload.rollout_id))
    return source_columns(payload.source_type, payload.source_id) | {
        "id": context.owner,
        "training_id": context.envelope.training_id,
        "group_id": payload.group_id,
        "rollout_id": payload.rollout_id,
        "batch": payload.batch,
        "group_num": payload.group_num,
        "env_index": payload.env_index,
        "attempt": payload.attempt,
        "task_id": payload.task_id,
        "model_path": payload.model_path,
        "policy_version": payload.policy_version,
        "is_eval": payload.is_eval,
        "seed": payload.seed,
        "current_turn": 0,
        "max_turns": payload.max_turns,
        "temperature": payload.temperature,
        "status": payload.STATUS,
        "progress_percent": 0.0,
        "created_at": context.time,
        "updated_at": context.time,
    }


def _changed(payload: RolloutEvent, context: EventContext) -> Row:  # noqa: PLR0911  # one case per event
    match payload:
        case RolloutEnvironmentRequested():
            return {"current_phase": "env_creation", "env_id": payload.env_id}
        case RolloutAgentInitialized():
            return {
                "current_phase": "agent_initialization",
                "env_creation_time": payload.env_creation_time_s,
            }
        case RolloutStarted():
            return {
                "current_phase": "task_execution",
                "agent_init_time": payload.agent_init_time_s,
                "task_start_time": payload.task_started_at,
            }
        case RolloutPhaseEntered():
            return {
                "current_phase": payload.current_phase,
                "progress_percent": payload.progress_percent,
            }
        case RolloutFinished():
            return _finished(payload, context)
        case RolloutFailed():
            return {
                "error_type": payload.error_type,
                "error_message": payload.error_message,
                "num_turns": payload.num_turns,
                "end_time": payload.ended_at,
            }
        case RolloutCancelled():
            return {"status_message": payload.reason, "end_time": payload.ended_at}
        case RolloutCreated():
            raise AssertionError
        case _:
            assert_never(payload)


def _finished(payload: RolloutFinished, context: EventContext) -> Row:
    return {
        "progress_percent": 100.0,
        "end_time": context.time,
        "task_end_time": payload.task_ended_at,
        "rollout_time": payload.rollout_time_s,
        "validation_time": payload.validation_time_s,
        "task_completed": payload.task_completed,
        "task_success": payload.task_success,
        "agent_reported_success": payload.agent_reported_success,
        "validation_passed": payload.validation_passed,
        "num_turns": payload.num_turns,
        "reward": payload.reward,
        "num_tokens": payload.num_tokens,
        "num_total_actions": payload.num_total_actions,
        "consecutive_repeated_actions": payload.consecutive_repeated_actions,
        "parse_errors": payload.parse_errors,
        "tool_name_errors": payload.tool_name_errors,
        "tool_arg_errors": payload.tool_arg_errors,
        "runtime_errors": payload.runtime_errors,
        "ran_out_of_turns": payload.ran_out_of_turns,
        "attempted_completion": payload.attempted_completion,
        "turn_first_success": payload.turn_first_success,
        "turn_task_completed": payload.turn_task_completed,
        "errors": payload.errors,
        "summary_json": payload.summary,
    }
