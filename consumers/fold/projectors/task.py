"""Tasks and validators: content-addressed rows that any training or evaluation may define."""

from collections.abc import Sequence

from consumers.fold.projectors.projector import EventContext, check_id
from consumers.fold.rows import Operation, Row, UnappliableError, Upsert
from schemas.base import Payload
from schemas.ids import content_hash, task_row_id, validator_row_id
from schemas.task import SHELL, TaskStated, ValidatorStated

COLUMNS = tuple(name for name in TaskStated.model_fields if name != "definition")


def _check_definition(payload: TaskStated) -> None:
    """UnappliableError unless the definition that the id hashes equals the columns.

    It has fields that the event lacks (set-up commands, split, the query's parameters), so that
    without it the hash cannot be computed again.
    """
    if payload.definition is None:
        message = (
            f"the task {payload.task_id!r} is stated without its definition, so that its hash"
            " cannot be checked"
        )
        raise UnappliableError(message)
    if content_hash(payload.definition) != payload.definition_hash:
        message = (
            f"the definition of task {payload.task_id!r} does not have the hash that it states"
        )
        raise UnappliableError(message)
    stated = payload.model_dump(mode="json", exclude={"id", "definition_hash", "definition"})
    is_judged = payload.definition.get("validation_query") is not None
    derived: Row = {"validation_type": SHELL if is_judged else None, "prerequisites": []}
    expected = derived | payload.definition
    for name, value in stated.items():
        if name not in expected or expected[name] != value:
            message = f"task {payload.task_id!r} states another {name} than its definition"
            raise UnappliableError(message)


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
        _check_definition(payload)
        row: Row = {name: getattr(payload, name) for name in COLUMNS}
        row |= {"created_at": context.time, "updated_at": context.time}
        return [Upsert("task", row)]


class ValidatorProjector:
    """ValidatorStated."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One row."""
        assert isinstance(payload, ValidatorStated)  # noqa: S101  # the registry names the class
        content = [
            str(payload.task_id),
            payload.validator_type,
            payload.validation_query,
            payload.validation_method,
            payload.config,
        ]
        check_id("this validator", payload.id, validator_row_id(content))
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
