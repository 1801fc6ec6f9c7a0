"""Events of tasks and validators: content-addressed, emitted by any training that uses them."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue

from schemas.base import Id, Items, KeyText, Payload

Difficulty = Literal["easy", "medium", "hard"]
SHELL = "shell"
"""The validation type of every task that can be judged."""


class TaskStated(Payload):
    """A task's definition. The same `task_id` with another definition is another row."""

    TYPE: ClassVar[str] = "cua.task.stated"

    id: Id
    """Row id: hash of task_id and definition_hash."""
    task_id: KeyText
    """The task's name: `train_02_enable_wifi`."""
    definition_hash: KeyText
    """Hex sha256 of every field of the definition."""
    name: str
    """Title for people."""
    description: str
    """The instruction for the agent."""
    difficulty: Difficulty | None
    """None: unrated."""
    category: str | None
    """app, settings, navigation, system, input ...; None: none."""
    max_steps: int
    """Turns the agent may take."""
    validation_type: str | None
    """Type of the validator: `shell`, `agent`, `model` or `environment`; None: the task cannot be
    judged."""
    validation_query: str | None
    """Device query; None: no device query judges the task."""
    expected_result: str | None
    """The answer that solves the task; None: no device query judges it."""
    tags: Items[str] = ()
    """Free labels."""
    prerequisites: Items[str] = ()
    """Conditions the device must meet."""
    app_name: str | None = None
    """The app the task is about; None: no particular app."""
    source_type: str
    """Where the definition came from: demo_training, demo_eval, file, custom ..."""
    definition: Annotated[
        dict[str, JsonValue] | None, Field(exclude_if=lambda stated: stated is None)
    ] = None
    """What definition_hash hashes: the fields above and those that the device is set up with. An
    event without it is parked."""


class ValidatorStated(Payload):
    """How a task is judged. The row's id hashes all other fields."""

    TYPE: ClassVar[str] = "cua.validator.stated"

    id: Id
    """Row id."""
    task_id: Id
    """Row id of the task."""
    validator_type: str
    """`shell`: judged by shell commands on the device; `agent`: by the agent's own report; `model`:
    by another policy behind an endpoint; `environment`: by the environment itself."""
    validation_query: str
    """Device query, or `agent_report`, `model_judge`, `environment`."""
    validation_method: str
    """How the answer is compared with the expected one: `equals`, `at_least` ..."""
    config: dict[str, JsonValue]
    """Expected result, set-up commands, parameters of the query; of `model`: endpoint, model and
    hash of the instructions."""
