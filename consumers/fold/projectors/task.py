"""Tasks and validators: content-addressed rows that any training or evaluation may define."""

from collections.abc import Sequence

from consumers.fold.projectors.projector import EventContext, check_id
from consumers.fold.rows import UNPROVEN, Operation, Row, UnappliableError, Upsert
from schemas.base import Payload
from schemas.ids import content_hash, task_row_id, validator_row_id
from schemas.task import SHELL, TaskStated, ValidatorStated

COLUMNS = tuple(name for name in TaskStated.model_fields if name != "definition")


def _check_definition(payload: TaskStated) -> None:
    """UnappliableError unless the definition that the id hashes equals the columns.

    Older writers did not state the definition, and it has fields that the event lacks (set-up
    commands, split, the query's parameters), so that their hash cannot be computed again: their
    content gives way to one that is proven, and among themselves the smallest hash wins.
    """
    if payload.definition is None:
        return
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


def _unproven_hash(payload: TaskStated) -> str | None:
    """Of what the event states, where the definition that its id hashes is not stated."""
    if payload.definition is not None:
        return None
    return content_hash(payload.model_dump(mode="json", exclude={"definition"}))


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
        row |= {
            UNPROVEN: _unproven_hash(payload),
            "created_at": context.time,
            "updated_at": context.time,
        }
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
