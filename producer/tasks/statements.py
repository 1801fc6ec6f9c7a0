"""The events that record a task and its validator; their ids hash their content."""

from dataclasses import asdict
from typing import Final

from pydantic import JsonValue, TypeAdapter
from pydantic_core import to_json

from producer.task import Task
from producer.validators.judge import EQUALS
from schemas.ids import content_hash, task_row_id, validator_row_id
from schemas.task import SHELL, TaskStated, ValidatorStated

VALIDATOR_TYPE: Final = SHELL


def definition_hash(task: Task) -> str:
    """sha256 of every field of the definition: any change makes another task row."""
    return content_hash(definition(task))


def definition(task: Task) -> dict[str, JsonValue]:
    """Every field, as the event states it and its reader hashes it again."""
    return TypeAdapter(dict[str, JsonValue]).validate_json(to_json(asdict(task)))


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
        validation_type=VALIDATOR_TYPE if task.is_judged else None,
        validation_query=task.validation_query,
        expected_result=task.expected_result,
        tags=task.tags,
        app_name=task.app_name,
        source_type=task.source_type,
        definition=definition(task),
    )
    if task.validation_query is None:
        return stated, None
    config: dict[str, JsonValue] = {
        "expected_result": task.expected_result,
        "setup": list(task.setup),
        "parameters": dict(task.validation_config),
    }
    content = [str(row_id), VALIDATOR_TYPE, task.validation_query, EQUALS, config]
    validator = ValidatorStated(
        id=validator_row_id(content),
        task_id=row_id,
        validator_type=VALIDATOR_TYPE,
        validation_query=task.validation_query,
        validation_method=EQUALS,
        config=config,
    )
    return stated, validator
