"""Facts about a group (rollouts of one task compared with each other).

They stand in the stream of the group's source.
"""

from typing import ClassVar, Literal

from pydantic import JsonValue

from schemas.base import Count, Id, Payload, Progress, UtcTime

SourceType = Literal["step", "eval", "baseline"]


class GroupCreated(Payload):
    """A group is planned."""

    TYPE: ClassVar[str] = "cua.group.created"
    ENTITY: ClassVar[str | None] = "group"
    STATUS: ClassVar[str | None] = "pending"
    CREATES: ClassVar[bool] = True

    group_id: Id
    source_type: SourceType
    source_id: Id
    """The step, eval or baseline."""
    group_num: Count
    """From 0 within the source."""
    batch: Count
    num_rollouts: Count


class GroupStarted(Payload):
    """The first rollout of the group runs."""

    TYPE: ClassVar[str] = "cua.group.started"
    ENTITY: ClassVar[str | None] = "group"
    STATUS: ClassVar[str | None] = "running"

    group_id: Id
    started_at: UtcTime


class GroupProgressed(Payload):
    """How many of the group's rollouts ended; throttled."""

    TYPE: ClassVar[str] = "cua.group.progressed"
    ENTITY: ClassVar[str | None] = "group"

    group_id: Id
    completed_rollouts: Count
    progress: Progress


class GroupFinished(Payload):
    """Every rollout of the group has ended."""

    TYPE: ClassVar[str] = "cua.group.finished"
    ENTITY: ClassVar[str | None] = "group"
    STATUS: ClassVar[str | None] = "completed"

    group_id: Id
    completed_rollouts: Count
    """Rollouts that ended with a reward."""
    reward_mean: float
    reward_std: float
    """Population standard deviation."""
    success_count: Count
    rollout_ids: tuple[Id, ...]
    """The rollouts that were counted (of each place in the group, the last attempt)."""
    ended_at: UtcTime
    progress: Progress
    metrics: dict[str, JsonValue]


class GroupDropped(Payload):
    """A completed group does not train the policy."""

    TYPE: ClassVar[str] = "cua.group.dropped"

    group_id: Id
    reason: Literal["zero_variance", "too_few_rollouts", "stale"]


class GroupFailed(Payload):
    """Too few of the group's rollouts ended with a reward, or nobody will run the others."""

    TYPE: ClassVar[str] = "cua.group.failed"
    ENTITY: ClassVar[str | None] = "group"
    STATUS: ClassVar[str | None] = "failed"

    group_id: Id
    completed_rollouts: Count
    error_message: str
    ended_at: UtcTime
