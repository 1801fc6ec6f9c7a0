"""Facts about one attempt of an agent at a task.

Its one writer runs it to its end, stream `rollout/<id>`.
"""

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
    """What the environment and the sampling are seeded with."""


class RolloutEnvironmentRequested(Payload):
    """The environment is being made (`env_creation`)."""

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


class RolloutStarted(Payload):
    """The agent works on the task (`running`)."""

    TYPE: ClassVar[str] = "cua.rollout.started"
    ENTITY: ClassVar[str | None] = "rollout"
    STATUS: ClassVar[str | None] = "running"

    agent_init_time_s: Seconds
    task_started_at: UtcTime


class RolloutFinished(Payload):
    """The episode ended and was judged; running out of turns or time is such an end."""

    TYPE: ClassVar[str] = "cua.rollout.finished"
    ENTITY: ClassVar[str | None] = "rollout"
    STATUS: ClassVar[str | None] = "completed"

    task_ended_at: UtcTime
    rollout_time_s: Seconds
    """From the environment's request to this fact."""
    validation_time_s: Seconds
    task_completed: bool
    """The agent ended the episode itself."""
    task_success: bool
    """The episode counts as solved."""
    agent_reported_success: bool | None
    """What the agent said; None when it said nothing."""
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
    """Turn after which the validator would first have passed, where it was asked; else None."""
    turn_task_completed: Count | None
    num_tokens: Count
    """Completion tokens of all turns."""
    errors: tuple[str, ...] = ()
    summary: dict[str, JsonValue] = {}


class RolloutFailed(Payload):
    """The attempt could not be brought to its end by no fault of the agent; never scored."""

    TYPE: ClassVar[str] = "cua.rollout.failed"
    ENTITY: ClassVar[str | None] = "rollout"
    STATUS: ClassVar[str | None] = "failed"

    error_type: str
    """The boundary that was crossed: environment, environment_timeout, policy, validator."""
    error_message: str
    num_turns: Count
    ended_at: UtcTime


class RolloutCancelled(Payload):
    """Its process died or was stopped before the end."""

    TYPE: ClassVar[str] = "cua.rollout.cancelled"
    ENTITY: ClassVar[str | None] = "rollout"
    STATUS: ClassVar[str | None] = "cancelled"

    reason: str
    ended_at: UtcTime


class RolloutPhaseEntered(Payload):
    """A phase of a running rollout that is no status of its own: validation, cleanup."""

    TYPE: ClassVar[str] = "cua.rollout.phase_entered"
    ENTITY: ClassVar[str | None] = "rollout"

    current_phase: str
    progress_percent: Percent
