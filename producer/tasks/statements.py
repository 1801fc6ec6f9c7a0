"""The events that record a task and its validator; their ids hash their content."""

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
"""What the validator of an entry names instead of a query: its environment judges it."""
QUERY_OF_TYPE = {"agent": REPORT_QUERY, "model": MODEL_QUERY, "environment": ENVIRONMENT_QUERY}
"""Type of a validator that asks no device -> what its verdicts name instead of a query."""
OWN_FIELDS = frozenset({"id", "definition_hash", "definition", "prerequisites"})
"""Of TaskStated; a Task has the others under the same names."""
_FIELDS = TypeAdapter(dict[str, JsonValue])
"""Made once: making it takes ten times as long as its use."""


def definition_hash(task: Task) -> str:
    """sha256 of every field of the definition: any change makes another task row."""
    return content_hash(definition(task))


def definition(task: Task) -> dict[str, JsonValue]:
    """Every field, as the event states it and its reader hashes it again.

    Fields of a judge are left out where there is none, and so is an entry, of which the hash
    stands: tasks stated before there were judges or entries keep their hashes.
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
    """The event of the entry that the task is made of; None: of none."""
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
    """The event of the task and the event of its validator (None if it cannot be judged).

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
