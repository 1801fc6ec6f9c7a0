"""Events of a group: rollouts of one task that are compared with each other.

Stream of the group's source: a training (for a step) or an evaluation.
"""

from typing import ClassVar, Literal

from pydantic import JsonValue

from schemas.base import Count, Id, Items, Payload, Progress, UtcTime

SourceType = Literal["step", "eval", "baseline"]


class GroupCreated(Payload):
    """A group is planned."""

    TYPE: ClassVar[str] = "cua.group.created"
    ENTITY: ClassVar[str | None] = "group"
    STATUS: ClassVar[str | None] = "pending"
    CREATES: ClassVar[bool] = True

    group_id: Id
    """Hash of source_id and group_num."""
    source_type: SourceType
    """What the group belongs to."""
    source_id: Id
    """The step, eval or baseline."""
    group_num: Count
    """Index in the source, from 0."""
    batch: Count
    """Batch of the task data, from 0."""
    num_rollouts: Count
    """Planned rollouts."""


class GroupStarted(Payload):
    """The first rollout of the group started."""

    TYPE: ClassVar[str] = "cua.group.started"
    ENTITY: ClassVar[str | None] = "group"
    STATUS: ClassVar[str | None] = "running"

    group_id: Id
    """The group."""
    started_at: UtcTime
    """When the first rollout started."""


class GroupProgressed(Payload):
    """Progress of the group; throttled."""

    TYPE: ClassVar[str] = "cua.group.progressed"
    ENTITY: ClassVar[str | None] = "group"

    group_id: Id
    """The group."""
    completed_rollouts: Count
    """Rollouts that ended with a reward."""
    progress: Progress
    """Of the whole group."""


class GroupFinished(Payload):
    """All rollouts of the group have ended."""

    TYPE: ClassVar[str] = "cua.group.finished"
    ENTITY: ClassVar[str | None] = "group"
    STATUS: ClassVar[str | None] = "completed"

    group_id: Id
    """The group."""
    completed_rollouts: Count
    """Rollouts that ended with a reward."""
    reward_mean: float
    """Mean reward of those rollouts."""
    reward_std: float
    """Population standard deviation of their rewards."""
    success_count: Count
    """Those that solved the task."""
    rollout_ids: Items[Id]
    """Those rollouts; the last attempt for each index in the group."""
    ended_at: UtcTime
    """When the last rollout ended."""
    progress: Progress
    """100 percent."""
    metrics: dict[str, JsonValue]
    """Further measurements."""


class GroupDropped(Payload):
    """A completed group is not trained on."""

    TYPE: ClassVar[str] = "cua.group.dropped"

    group_id: Id
    """The group."""
    reason: Literal["zero_variance", "too_few_rollouts", "stale"]
    """Equal rewards, fewer rollouts than required, or sampled by too old a policy."""


class GroupFailed(Payload):
    """Too few rollouts of the group ended with a reward, or the rest will not be run."""

    TYPE: ClassVar[str] = "cua.group.failed"
    ENTITY: ClassVar[str | None] = "group"
    STATUS: ClassVar[str | None] = "failed"

    group_id: Id
    """The group."""
    completed_rollouts: Count
    """Rollouts that ended with a reward."""
    error_message: str
    """Why the group failed."""
    ended_at: UtcTime
    """When it failed."""
