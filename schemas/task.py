"""Tasks and validators: content-addressed, so that any training may state them and nobody can change them."""

from typing import ClassVar, Literal

from pydantic import JsonValue

from schemas.base import Id, Payload

Difficulty = Literal["easy", "medium", "hard"]


class TaskStated(Payload):
    """A task's definition. The row's id hashes (task_id, definition_hash)."""

    TYPE: ClassVar[str] = "cua.task.stated"

    id: Id
    task_id: str
    """The task's name for people and files: `train_02_enable_wifi`."""
    definition_hash: str
    """sha256 of every field of the definition."""
    name: str
    description: str
    """The instruction that the agent gets."""
    difficulty: Difficulty | None
    category: str | None
    max_steps: int
    """Turns the agent may take."""
    validation_type: str | None
    validation_query: str | None
    expected_result: str | None
    tags: tuple[str, ...] = ()
    prerequisites: tuple[str, ...] = ()
    app_name: str | None = None
    source_type: str
    """Where the definition came from: demo_training, demo_eval, file, custom ..."""


class ValidatorStated(Payload):
    """How a task is judged. The row's id hashes everything below."""

    TYPE: ClassVar[str] = "cua.validator.stated"

    id: Id
    task_id: Id
    """Row id of the task."""
    validator_type: str
    """What judges: `shell` asks the device."""
    validation_query: str
    validation_method: str
    """How the answer is compared with what is expected: `equals`, `at_least` ..."""
    config: dict[str, JsonValue]
