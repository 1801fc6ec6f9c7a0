"""An evaluation's row, in `baseline` or `eval` by the `kind` in its events."""

from collections.abc import Sequence
from typing import assert_never

from consumers.fold.projectors.projector import EventContext, check_id, progress_columns
from consumers.fold.rows import Insert, Operation, Row, Update
from schemas.base import Payload
from schemas.evaluation import (
    EvaluationCancelled,
    EvaluationCreated,
    EvaluationFailed,
    EvaluationFinished,
    EvaluationProgressed,
    EvaluationStarted,
    EvaluationSuperseded,
)
from schemas.ids import baseline_id, eval_id

EvaluationEvent = (
    EvaluationCreated
    | EvaluationStarted
    | EvaluationProgressed
    | EvaluationFinished
    | EvaluationFailed
    | EvaluationCancelled
)


def table_of(kind: str) -> str:
    """The table of an evaluation of this kind."""
    return "baseline" if kind == "baseline" else "eval"


class EvaluationProjector:
    """Events of the evaluation itself."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row; for EvaluationSuperseded also those of its groups."""
        if isinstance(payload, EvaluationSuperseded):
            values: Row = {"superseded": True, "updated_at": context.time}
            return [
                Update(table_of(payload.kind), context.owner, values),
                *(Update("group", str(group), dict(values)) for group in payload.group_ids),
            ]
        assert isinstance(payload, EvaluationEvent)  # noqa: S101  # the registry names the class
        if isinstance(payload, EvaluationCreated):
            return [Insert(table_of(payload.kind), _created(payload, context))]
        started_at = payload.started_at if isinstance(payload, EvaluationStarted) else None
        return [context.change(payload, _changed(payload), started_at)]


def _created(payload: EvaluationCreated, context: EventContext) -> Row:
    _check_owner(payload, context.owner)
    of_event = context.envelope.training_id
    if payload.training_id is not None and of_event is not None:
        check_id("the training that the event belongs to", of_event, payload.training_id)
    row: Row = {
        "id": context.owner,
        "training_id": payload.training_id,
        "generation": payload.generation,
        "step": payload.step,
        "superseded": False,
        "model_path": payload.model_path,
        "current_task_index": 0,
        "total_tasks": payload.total_tasks,
        "temperature": payload.temperature,
        "split": payload.split,
        "num_tasks": payload.num_tasks,
        "task_source": payload.task_source,
        "completed_tasks": 0,
        "status": payload.STATUS,
        "progress_percent": 0.0,
        "current_phase": "initialization",
        "created_at": context.time,
        "updated_at": context.time,
    }
    if payload.kind != "baseline":
        row["kind"] = payload.kind
    return row


def _check_owner(payload: EvaluationCreated, owner: str) -> None:
    if payload.training_id is None or payload.generation is None:
        return
    if payload.kind == "baseline":
        expected = baseline_id(payload.training_id, payload.generation, payload.temperature)
        check_id("the baseline", owner, expected)
    elif payload.kind == "scheduled" and payload.step is not None:
        check_id(
            f"the evaluation after step {payload.step}",
            owner,
            eval_id(payload.training_id, payload.generation, payload.step, payload.temperature),
        )


def _changed(payload: EvaluationEvent) -> Row:
    match payload:
        case EvaluationStarted():
            return {"current_phase": "rollout"}
        case EvaluationProgressed():
            return progress_columns(payload.progress) | {
                "current_phase": payload.current_phase,
                "current_task_index": payload.current_task_index,
                "completed_tasks": payload.completed_tasks,
            }
        case EvaluationFinished():
            return progress_columns(payload.progress) | {
                "completed_tasks": payload.completed_tasks,
                "eval_time": payload.eval_time_s,
                "success_rate": payload.success_rate,
                "standard_error": payload.standard_error,
                "avg_reward": payload.avg_reward,
                "avg_turns": payload.avg_turns,
                "successful_tasks": payload.successful_tasks,
                "end_time": payload.ended_at,
                "metrics_json": payload.metrics,
            }
        case EvaluationFailed():
            return {"error_message": payload.error_message, "end_time": payload.ended_at}
        case EvaluationCancelled():
            return {"status_message": payload.reason, "end_time": payload.ended_at}
        case EvaluationCreated():
            raise AssertionError
        case _:
            assert_never(payload)
