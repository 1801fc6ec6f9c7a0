"""Events of one attempt of an agent at a task; stream `rollout/<id>`, written by who runs it."""

from typing import ClassVar

from pydantic import JsonValue

from schemas.base import Count, Id, Payload, Percent, Seconds, UtcTime
from schemas.group import SourceType


class RolloutCreated(Payload):
    """A rollout is planned."""

    TYPE: ClassVar[str] = "cua.rollout.created"
    ENTITY: ClassVar[str | None] = "rollout"
    STATUS: ClassVar[str | None] = "pending"
    CREATES: ClassVar[bool] = True

    rollout_id: str
    """The text id; the row's id is its UUIDv5."""
    source_type: SourceType
    source_id: Id
    group_id: Id
    batch: Count
    group_num: Count
    env_index: Count
    """Place in the group, from 0."""
    attempt: Count
    """From 0; a retry is a new rollout."""
    task_id: Id
    """Row id of the task."""
    model_path: str | None
    policy_version: Count
    is_eval: bool
    max_turns: Count
    temperature: float
    seed: int
    """Of the environment; the rollouts of a group share it."""


class RolloutEnvironmentRequested(Payload):
    """The environment is being created (`env_creation`)."""

    TYPE: ClassVar[str] = "cua.rollout.environment_requested"
    ENTITY: ClassVar[str | None] = "rollout"
    STATUS: ClassVar[str | None] = "env_creation"

    env_id: Id
    """The environment's stream `environment/<id>`."""


class RolloutAgentInitialized(Payload):
    """The environment is up; the agent gets the task (`agent_init`)."""

    TYPE: ClassVar[str] = "cua.rollout.agent_initialized"
    ENTITY: ClassVar[str | None] = "rollout"
    STATUS: ClassVar[str | None] = "agent_init"

    env_creation_time_s: Seconds
    """From the rollout's creation until the environment is up."""


class RolloutStarted(Payload):
    """The agent works on the task (`running`)."""

    TYPE: ClassVar[str] = "cua.rollout.started"
    ENTITY: ClassVar[str | None] = "rollout"
    STATUS: ClassVar[str | None] = "running"

    agent_init_time_s: Seconds
    """From the environment being up until the agent's first request is ready to be sampled: near 0,
    or long when the process was busy with other rollouts."""
    task_started_at: UtcTime


class RolloutFinished(Payload):
    """The episode ended and was judged; running out of turns or time is such an end."""

    TYPE: ClassVar[str] = "cua.rollout.finished"
    ENTITY: ClassVar[str | None] = "rollout"
    STATUS: ClassVar[str | None] = "completed"

    task_ended_at: UtcTime
    rollout_time_s: Seconds
    """From the rollout's creation to this event."""
    validation_time_s: Seconds
    task_completed: bool
    """The agent ended the episode itself."""
    task_success: bool
    """The episode counts as solved."""
    agent_reported_success: bool | None
    """The agent's own claim when it ended the episode; None when it did not end it."""
    validation_passed: bool | None
    """None when the task has no validator."""
    num_turns: Count
    reward: float
    num_total_actions: Count
    consecutive_repeated_actions: Count
    """Actions equal to the one before."""
    parse_errors: Count
    tool_name_errors: Count
    tool_arg_errors: Count
    runtime_errors: Count
    ran_out_of_turns: bool
    attempted_completion: bool
    turn_first_success: Count | None
    """Turn after which the validator first passed; None unless it is asked after every turn."""
    turn_task_completed: Count | None
    """Last turn of a solved episode that the agent ended itself; else None."""
    num_tokens: Count
    """Completion tokens of all turns."""
    errors: tuple[str, ...] = ()
    summary: dict[str, JsonValue] = {}


class RolloutFailed(Payload):
    """The attempt broke off through no fault of the agent; never scored."""

    TYPE: ClassVar[str] = "cua.rollout.failed"
    ENTITY: ClassVar[str | None] = "rollout"
    STATUS: ClassVar[str | None] = "failed"

    error_type: str
    """The boundary that was crossed: environment, environment_timeout, policy, validator."""
    error_message: str
    num_turns: Count
    ended_at: UtcTime


class RolloutCancelled(Payload):
    """The attempt's process died or was stopped before the end."""

    TYPE: ClassVar[str] = "cua.rollout.cancelled"
    ENTITY: ClassVar[str | None] = "rollout"
    STATUS: ClassVar[str | None] = "cancelled"

    reason: str
    ended_at: UtcTime


class RolloutPhaseEntered(Payload):
    """A phase of a running rollout that has no status of its own: validation, cleanup."""

    TYPE: ClassVar[str] = "cua.rollout.phase_entered"
    ENTITY: ClassVar[str | None] = "rollout"

    current_phase: str
    progress_percent: Percent
