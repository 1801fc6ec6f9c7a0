"""Events of one attempt of an agent at a task; stream `rollout/<id>`, written by who runs it."""

from typing import ClassVar

from pydantic import JsonValue

from schemas.base import (
    BigCount,
    BigInt,
    Count,
    Id,
    Items,
    KeyText,
    Payload,
    Percent,
    Seconds,
    UtcTime,
)
from schemas.group import SourceType


class RolloutCreated(Payload):
    """A rollout is planned."""

    TYPE: ClassVar[str] = "cua.rollout.created"
    ENTITY: ClassVar[str | None] = "rollout"
    STATUS: ClassVar[str | None] = "pending"
    CREATES: ClassVar[bool] = True

    rollout_id: KeyText
    """The text id; the row's id is its UUIDv5."""
    source_type: SourceType
    """What the rollout was made for."""
    source_id: Id
    """The step, eval or baseline."""
    group_id: Id
    """Its group."""
    batch: Count
    """Batch of the task data, from 0."""
    group_num: Count
    """Index of the group in its source, from 0."""
    env_index: Count
    """Place in the group, from 0."""
    attempt: Count
    """From 0; a retry is a new rollout."""
    task_id: Id
    """Row id of the task."""
    model_path: str | None
    """Name of the policy: hub id or folder; None: not recorded."""
    policy_version: Count
    """Version of the policy that samples its first turn."""
    is_eval: bool
    """Whether it evaluates the policy; False: it is trained on."""
    max_turns: Count
    """Turns the agent may take."""
    temperature: float
    """Sampling temperature; 0: greedy."""
    seed: BigInt
    """Seed of the environment, the same for all rollouts of a group."""


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
    """When the agent got the task."""


class RolloutFinished(Payload):
    """The episode ended and was judged; running out of turns or time is such an end."""

    TYPE: ClassVar[str] = "cua.rollout.finished"
    ENTITY: ClassVar[str | None] = "rollout"
    STATUS: ClassVar[str | None] = "completed"

    task_ended_at: UtcTime
    """When the episode had been judged."""
    rollout_time_s: Seconds
    """From the rollout's creation to this event."""
    validation_time_s: Seconds
    """Duration of the validation."""
    task_completed: bool
    """The agent ended the episode itself."""
    task_success: bool
    """The episode counts as solved."""
    agent_reported_success: bool | None
    """The agent's own claim when it ended the episode; None when it did not end it."""
    validation_passed: bool | None
    """None when the task has no validator."""
    num_turns: Count
    """Turns taken."""
    reward: float
    """Reward of the whole episode."""
    num_total_actions: Count
    """Actions of all turns."""
    consecutive_repeated_actions: Count
    """Actions equal to the one before."""
    parse_errors: Count
    """Completions that could not be parsed."""
    tool_name_errors: Count
    """Actions whose tool does not exist."""
    tool_arg_errors: Count
    """Actions whose arguments do not fit their tool."""
    runtime_errors: Count
    """Actions that the environment refused."""
    ran_out_of_turns: bool
    """The limit of turns ended the episode."""
    attempted_completion: bool
    """The agent said that it was done."""
    turn_first_success: Count | None
    """Turn after which the validator first passed; None: after none, or it is asked at the end
    only."""
    turn_task_completed: Count | None
    """Last turn of a solved episode that the agent ended itself; else None."""
    num_tokens: BigCount
    """Completion tokens of all turns."""
    errors: Items[str] = ()
    """Messages of errors that did not end the episode."""
    summary: dict[str, JsonValue] = {}
    """Further measurements."""


class RolloutFailed(Payload):
    """The attempt broke off through no fault of the agent; never scored."""

    TYPE: ClassVar[str] = "cua.rollout.failed"
    ENTITY: ClassVar[str | None] = "rollout"
    STATUS: ClassVar[str | None] = "failed"

    error_type: str
    """The boundary crossed: environment, environment_timeout, policy, validator, reward."""
    error_message: str
    """What went wrong."""
    num_turns: Count
    """Turns taken until then."""
    ended_at: UtcTime
    """When it broke off."""


class RolloutCancelled(Payload):
    """The attempt's process died or was stopped before the end."""

    TYPE: ClassVar[str] = "cua.rollout.cancelled"
    ENTITY: ClassVar[str | None] = "rollout"
    STATUS: ClassVar[str | None] = "cancelled"

    reason: str
    """Why it was cancelled."""
    ended_at: UtcTime
    """When it was cancelled."""


class RolloutPhaseEntered(Payload):
    """A phase of a running rollout that has no status of its own: validation, cleanup."""

    TYPE: ClassVar[str] = "cua.rollout.phase_entered"
    ENTITY: ClassVar[str | None] = "rollout"

    current_phase: str
    """The phase: validation, cleanup."""
    progress_percent: Percent
    """0-100, of the rollout."""
