"""The events that record a task and its validator. Their ids are hashes of their content."""

from dataclasses import asdict, replace
from uuid import UUID

from pydantic import JsonValue, TypeAdapter
from pydantic_core import to_json

from producer.task import Task
from producer.validators.judges import INSTRUCTIONS, MODEL_QUERY, REPORT_QUERY, SUCCESS
from producer.validators.verdict import EQUALS
from schemas.entry import EntryStated, entry_hash
from schemas.ids import content_hash, entry_row_id, task_row_id, validator_row_id
from schemas.task import SHELL, TaskStated, ValidatorStated

ENVIRONMENT_QUERY = "environment"
"""Stands in for the query in the validator of an entry, which its environment judges."""
QUERY_OF_TYPE = {"agent": REPORT_QUERY, "model": MODEL_QUERY, "environment": ENVIRONMENT_QUERY}
"""Maps the type of a validator without a device query to what its verdicts name instead."""
OWN_FIELDS = frozenset({"id", "definition_hash", "definition", "prerequisites"})
"""Fields that only TaskStated has. A Task has all others under the same names."""
_FIELDS = TypeAdapter(dict[str, JsonValue])
"""Created once, because creating it takes ten times as long as using it."""


def definition_hash(task: Task) -> str:
    """sha256 of every field of the definition. Any change makes a new task row."""
    return content_hash(definition(task))


def definition(task: Task) -> dict[str, JsonValue]:
    """All fields, as the event records them and its reader hashes them again.

    Without a judge, the judge's fields are left out. An entry is replaced by its hash, or left out
    if there is none. So tasks recorded before judges and entries existed keep their hashes.
    """
    fields = asdict(replace(task, entry=None))
    del fields["entry"]
    if task.entry is not None:
        fields["entry"] = entry_hash(task.entry)
    if task.judge is None:
        del fields["judge"], fields["judge_model"]
    if task.validation_type not in {None, SHELL}:
        fields["validation_type"] = task.validation_type
    return _FIELDS.validate_json(to_json(fields))


def entry_fact(task: Task, task_row: UUID) -> EntryStated | None:
    """The event for the task's entry; None if it has no entry."""
    if task.entry is None:
        return None
    digest = entry_hash(task.entry)
    return EntryStated(
        id=entry_row_id(task_row, digest),
        task_id=task_row,
        content_hash=digest,
        content=task.entry,
    )


def task_facts(task: Task) -> tuple[TaskStated, ValidatorStated | None]:
    """The event for the task and the event for its validator, None if it cannot be judged.

    Deterministic: the same task gives the same payloads.
    """
    digest = definition_hash(task)
    row_id = task_row_id(task.task_id, digest)
    same = {name: getattr(task, name) for name in TaskStated.model_fields.keys() - OWN_FIELDS}
    stated = TaskStated(id=row_id, definition_hash=digest, definition=definition(task), **same)
    return stated, None if task.validation_type is None else _validator(task, row_id)


def _validator(task: Task, row_id: UUID) -> ValidatorStated:
    kind = str(task.validation_type)
    query = task.validation_query or QUERY_OF_TYPE[kind]
    config: dict[str, JsonValue] = {
        "expected_result": SUCCESS if kind in {"agent", "model"} else task.expected_result,
        "setup": list(task.setup),
        "parameters": dict(task.validation_config),
    }
    if kind == "model":
        instructions = content_hash(INSTRUCTIONS)
        config |= {"judge": task.judge, "model": task.judge_model, "instructions": instructions}
    content = [str(row_id), kind, query, EQUALS, config]
    return ValidatorStated(
        id=validator_row_id(content),
        task_id=row_id,
        validator_type=kind,
        validation_query=query,
        validation_method=EQUALS,
        config=config,
    )
