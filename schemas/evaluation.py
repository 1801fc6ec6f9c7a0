"""Facts about an evaluation (the baseline before the first step, one on schedule, one by hand), stream `evaluation/<id>`.

`kind` decides the row: baseline -> table baseline, everything else -> table eval. It is in every event, so that each can be
applied on its own.
"""

from typing import ClassVar, Literal

from pydantic import JsonValue

from schemas.base import Count, Id, Payload, Progress, Seconds, UtcTime

Kind = Literal["baseline", "scheduled", "manual"]
BY_KIND = "evaluation"
"""ENTITY of these payloads: `baseline` or `eval`, as `kind` says (see `catalogue.entity_of`)."""


class EvaluationCreated(Payload):
    """An evaluation is planned."""

    TYPE: ClassVar[str] = "cua.evaluation.created"
    ENTITY: ClassVar[str | None] = BY_KIND
    STATUS: ClassVar[str | None] = "pending"
    CREATES: ClassVar[bool] = True

    kind: Kind
    training_id: Id | None
    """None for a policy that no training made."""
    generation: Count | None
    step: Count | None
    """Steps that the policy has had; None with no training."""
    model_path: str | None
    total_tasks: Count
    """Episodes that will be run."""


class EvaluationStarted(Payload):
    """The first episode runs."""

    TYPE: ClassVar[str] = "cua.evaluation.started"
    ENTITY: ClassVar[str | None] = BY_KIND
    STATUS: ClassVar[str | None] = "running"

    kind: Kind
    started_at: UtcTime


class EvaluationProgressed(Payload):
    """How far it is; throttled."""

    TYPE: ClassVar[str] = "cua.evaluation.progressed"
    ENTITY: ClassVar[str | None] = BY_KIND

    kind: Kind
    current_phase: Literal["initialization", "rollout", "validation", "aggregation"]
    current_task_index: Count
    completed_tasks: Count
    progress: Progress


class EvaluationFinished(Payload):
    """Every episode has ended."""

    TYPE: ClassVar[str] = "cua.evaluation.finished"
    ENTITY: ClassVar[str | None] = BY_KIND
    STATUS: ClassVar[str | None] = "completed"

    kind: Kind
    completed_tasks: Count
    eval_time_s: Seconds
    success_rate: float
    """0-1, of the episodes that were judged."""
    avg_reward: float
    avg_turns: float
    successful_tasks: Count
    ended_at: UtcTime
    progress: Progress
    metrics: dict[str, JsonValue]
    """standard_error, by_task, ..."""


class EvaluationFailed(Payload):
    """It ended on an error."""

    TYPE: ClassVar[str] = "cua.evaluation.failed"
    ENTITY: ClassVar[str | None] = BY_KIND
    STATUS: ClassVar[str | None] = "failed"

    kind: Kind
    error_message: str
    ended_at: UtcTime


class EvaluationCancelled(Payload):
    """Its process died or was stopped."""

    TYPE: ClassVar[str] = "cua.evaluation.cancelled"
    ENTITY: ClassVar[str | None] = BY_KIND
    STATUS: ClassVar[str | None] = "cancelled"

    kind: Kind
    reason: str
    ended_at: UtcTime


class EvaluationSuperseded(Payload):
    """A new generation trains again what this evaluation looked at.

    Marked with its groups, never deleted.
    """

    TYPE: ClassVar[str] = "cua.evaluation.superseded"

    kind: Kind
    group_ids: tuple[Id, ...] = ()
