"""Tasks and validators: content-addressed rows that any training or evaluation may define."""

from collections.abc import Sequence

from consumers.fold.projectors.projector import EventContext, check_id
from consumers.fold.rows import Operation, Row, Upsert
from schemas.base import Payload
from schemas.ids import task_row_id
from schemas.task import TaskStated, ValidatorStated


class TaskProjector:
    """TaskStated."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row."""
        assert isinstance(payload, TaskStated)  # noqa: S101  # the registry names the class
        check_id(
            f"this definition of task {payload.task_id!r}",
            payload.id,
            task_row_id(payload.task_id, payload.definition_hash),
        )
        row: Row = {name: getattr(payload, name) for name in TaskStated.model_fields}
        return [Upsert("task", row | {"created_at": context.time, "updated_at": context.time})]


class ValidatorProjector:
    """ValidatorStated."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row."""
        assert isinstance(payload, ValidatorStated)  # noqa: S101  # the registry names the class
        row: Row = {
            "id": payload.id,
            "task_id": payload.task_id,
            "validator_type": payload.validator_type,
            "validation_query": payload.validation_query,
            "validation_method": payload.validation_method,
            "config_json": payload.config,
            "created_at": context.time,
        }
        return [Upsert("validator", row)]
