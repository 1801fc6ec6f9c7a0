"""Events of an evaluation; stream `evaluation/<id>`.

The baseline before the first step, an evaluation on schedule, or one started by hand. Every event
has `kind`, because it decides the table: `baseline` for baselines, `eval` for the others.
"""

from typing import ClassVar, Literal

from pydantic import JsonValue

from schemas.base import Count, Id, Items, Payload, Progress, Seconds, Temperature, UtcTime

Kind = Literal["baseline", "scheduled", "manual"]
Split = Literal["held_out", "training_tasks_unseen_seeds", "training_tasks", "mixed"]
"""How the evaluated tasks relate to those of the training:

- held_out: the training has none of them;
- training_tasks_unseen_seeds: its own tasks, in initial states that it has not met;
- training_tasks: its own tasks as it met them, because a seed changes nothing about them;
- mixed: some of them are the training's.
"""
BY_KIND = "evaluation"
"""ENTITY of these payloads; `catalogue.entity_of` resolves it to `baseline` or `eval`."""


def evaluation_label(kind: Kind, step: int | None, temperature: float | None) -> str:
    """`baseline`, `eval-20`, and with a temperature above 0 `baseline-sampled`, `eval-20-sampled`.

    One that does not record its temperature is `baseline` or `eval-20`.
    """
    point = "baseline" if kind == "baseline" else f"eval-{step}"
    return f"{point}-sampled" if temperature else point


class EvaluationCreated(Payload):
    """An evaluation is planned."""

    TYPE: ClassVar[str] = "cua.evaluation.created"
    ENTITY: ClassVar[str | None] = BY_KIND
    STATUS: ClassVar[str | None] = "pending"
    CREATES: ClassVar[bool] = True

    kind: Kind
    """Decides the table."""
    training_id: Id | None
    """The training whose policy is evaluated; None: a policy from elsewhere."""
    generation: Count | None
    """Generation of the training; None: no training."""
    step: Count | None
    """Steps the policy has been trained for; None: no training."""
    model_path: str | None
    """Name of the policy: hub id or folder; None: not recorded."""
    total_tasks: Count
    """Planned episodes."""
    temperature: Temperature | None = None
    """Sampling temperature; 0 is greedy. None: not recorded (the id then has none either)."""
    split: Split | None = None
    """How the tasks relate to the training's. None: no training, or not recorded."""
    num_tasks: Count | None = None
    """Distinct tasks; None: not recorded."""
    task_source: str | None = None
    """Short name of the tasks: `demo_eval`, `18 task ids`, a file. None: not recorded."""


class EvaluationStarted(Payload):
    """The first episode started."""

    TYPE: ClassVar[str] = "cua.evaluation.started"
    ENTITY: ClassVar[str | None] = BY_KIND
    STATUS: ClassVar[str | None] = "running"

    kind: Kind
    """Decides the table."""
    started_at: UtcTime
    """When the first episode started."""


class EvaluationProgressed(Payload):
    """Progress of the evaluation; throttled."""

    TYPE: ClassVar[str] = "cua.evaluation.progressed"
    ENTITY: ClassVar[str | None] = BY_KIND

    kind: Kind
    """Decides the table."""
    current_phase: Literal["initialization", "rollout", "validation", "aggregation"]
    """What is being done."""
    current_task_index: Count
    """Index of the episode in progress, from 0."""
    completed_tasks: Count
    """Episodes that have ended."""
    progress: Progress
    """Progress of the whole evaluation."""


class EvaluationFinished(Payload):
    """All episodes have ended."""

    TYPE: ClassVar[str] = "cua.evaluation.finished"
    ENTITY: ClassVar[str | None] = BY_KIND
    STATUS: ClassVar[str | None] = "completed"

    kind: Kind
    """Decides the table."""
    completed_tasks: Count
    """Episodes that were judged."""
    eval_time_s: Seconds
    """Duration of the evaluation."""
    success_rate: float
    """0-1, of the judged episodes."""
    standard_error: float | None = None
    """Standard error of the success rate, clustered by task. None: not recorded."""
    avg_reward: float
    """Mean reward of the judged episodes."""
    avg_turns: float
    """Mean turns of the judged episodes."""
    successful_tasks: Count
    """Episodes that solved their task."""
    ended_at: UtcTime
    """When the last episode ended."""
    progress: Progress
    """100 percent."""
    metrics: dict[str, JsonValue]
    """standard_error, by_task ..."""


class EvaluationFailed(Payload):
    """The evaluation ended with an error."""

    TYPE: ClassVar[str] = "cua.evaluation.failed"
    ENTITY: ClassVar[str | None] = BY_KIND
    STATUS: ClassVar[str | None] = "failed"

    kind: Kind
    """Decides the table."""
    error_message: str
    """What went wrong."""
    ended_at: UtcTime
    """When it ended."""


class EvaluationCancelled(Payload):
    """The evaluation's process died or was stopped."""

    TYPE: ClassVar[str] = "cua.evaluation.cancelled"
    ENTITY: ClassVar[str | None] = BY_KIND
    STATUS: ClassVar[str | None] = "cancelled"

    kind: Kind
    """Decides the table."""
    reason: str
    """Why it was cancelled."""
    ended_at: UtcTime
    """When it was cancelled."""


class EvaluationSuperseded(Payload):
    """A new generation retrains the evaluated steps: the evaluation is marked, never deleted."""

    TYPE: ClassVar[str] = "cua.evaluation.superseded"

    kind: Kind
    """Decides the table."""
    group_ids: Items[Id] = ()
    """The evaluation's groups, marked with it."""
