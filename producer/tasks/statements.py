"""The events that record a task and its validator; their ids hash their content."""

from dataclasses import asdict
from uuid import UUID

from pydantic import JsonValue, TypeAdapter
from pydantic_core import to_json

from producer.task import Task
from producer.validators.judge import EQUALS
from producer.validators.judges import REPORT_QUERY, SUCCESS
from producer.validators.model_judge import INSTRUCTIONS, MODEL_QUERY
from schemas.ids import content_hash, task_row_id, validator_row_id
from schemas.task import TaskStated, ValidatorStated

QUERY_OF_TYPE = {"agent": REPORT_QUERY, "model": MODEL_QUERY}
"""Type of a validator that asks no device -> what its verdicts name instead of a query."""


def definition_hash(task: Task) -> str:
    """sha256 of every field of the definition: any change makes another task row."""
    return content_hash(definition(task))


def definition(task: Task) -> dict[str, JsonValue]:
    """Every field, as the event states it and its reader hashes it again.

    Fields of a judge are left out where there is none: tasks stated before there were judges keep
    their hashes.
    """
    fields = asdict(task)
    if task.judge is None:
        del fields["judge"], fields["judge_model"]
    else:
        fields["validation_type"] = task.validation_type
    return TypeAdapter(dict[str, JsonValue]).validate_json(to_json(fields))


def task_facts(task: Task) -> tuple[TaskStated, ValidatorStated | None]:
    """The event of the task and the event of its validator (None if it cannot be judged).

    Deterministic: the same task gives the same payloads.
    """
    digest = definition_hash(task)
    row_id = task_row_id(task.task_id, digest)
    stated = TaskStated(
        id=row_id,
        task_id=task.task_id,
        definition_hash=digest,
        name=task.name,
        description=task.description,
        difficulty=task.difficulty,
        category=task.category,
        max_steps=task.max_steps,
        validation_type=task.validation_type,
        validation_query=task.validation_query,
        expected_result=task.expected_result,
        tags=task.tags,
        app_name=task.app_name,
        source_type=task.source_type,
        definition=definition(task),
    )
    return stated, None if task.validation_type is None else _validator(task, row_id)


def _validator(task: Task, row_id: UUID) -> ValidatorStated:
    kind = str(task.validation_type)
    query = task.validation_query or QUERY_OF_TYPE[kind]
    config: dict[str, JsonValue] = {
        "expected_result": SUCCESS if task.validation_query is None else task.expected_result,
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
