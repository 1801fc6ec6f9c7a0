"""All payload classes by type and version, and the topic and entity of each stream."""

from functools import lru_cache
from uuid import UUID

from schemas import (
    annotation,
    checkpoint,
    completion,
    decision,
    entry,
    environment,
    evaluation,
    group,
    rollout,
    scoring,
    session,
    skills,
    step,
    task,
    training,
    turn,
    validation,
)
from schemas.base import Payload

PAYLOADS: tuple[type[Payload], ...] = (
    training.TrainingCreated,
    training.TrainingInitializing,
    training.TrainingStarted,
    training.TrainingProgressed,
    training.HeartbeatSent,
    training.TrainingPaused,
    training.TrainingResumed,
    training.TrainingCompleted,
    training.TrainingFailed,
    training.TrainingCancelled,
    training.StepSuperseded,
    skills.SkillsMeasured,
    task.TaskStated,
    task.ValidatorStated,
    entry.EntryStated,
    step.StepCreated,
    step.StepCollectionStarted,
    step.StepRolloutsStarted,
    step.StepTrainingStarted,
    step.StepProgressed,
    step.StepFinished,
    step.StepFailed,
    step.SamplesChosen,
    group.GroupCreated,
    group.GroupStarted,
    group.GroupProgressed,
    group.GroupFinished,
    group.GroupDropped,
    group.GroupFailed,
    rollout.RolloutCreated,
    rollout.RolloutEnvironmentRequested,
    rollout.RolloutAgentInitialized,
    rollout.RolloutStarted,
    rollout.RolloutPhaseEntered,
    rollout.RolloutFinished,
    rollout.RolloutFailed,
    rollout.RolloutCancelled,
    turn.TurnTaken,
    validation.ValidationRecorded,
    session.SessionEnded,
    completion.CompletionExecuted,
    completion.CompletionStepsScored,
    environment.EnvironmentRequested,
    environment.EnvironmentCreationStarted,
    environment.EnvironmentStarted,
    environment.EnvironmentTerminated,
    environment.EnvironmentFailed,
    environment.EnvironmentLeaked,
    environment.EnvironmentReleased,
    evaluation.EvaluationCreated,
    evaluation.EvaluationStarted,
    evaluation.EvaluationProgressed,
    evaluation.EvaluationFinished,
    evaluation.EvaluationFailed,
    evaluation.EvaluationCancelled,
    evaluation.EvaluationSuperseded,
    checkpoint.CheckpointSaved,
    annotation.TrainingAnnotated,
    scoring.ScoringCreated,
    scoring.RolloutScored,
    scoring.ScoringFinished,
    *decision.DECISIONS,
)

BY_TYPE: dict[tuple[str, int], type[Payload]] = {
    (payload.TYPE, payload.VERSION): payload for payload in PAYLOADS
}

TOPICS: dict[str, str] = {
    "training": "training",
    "evaluation": "training",
    "annotation": "training",
    "rollout": "rollouts",
    "environment": "rollouts",
    "scoring": "rollouts",
    "record": "training",
}
"""Kind of stream -> topic, without the installation's prefix (`CUA_TOPIC_PREFIX`). `record`: of a
record that is in no stream, wherever that is (`decision.lone_stream`)."""

TOPIC_NAMES: tuple[str, ...] = ("training", "rollouts")
NUM_PARTITIONS = 12
"""Of topics created by us."""


def stream(kind: str, owner: UUID) -> str:
    """The subject of a stream: `rollout/<uuid>`."""
    if kind not in TOPICS:
        message = f"unknown kind of stream {kind!r}; use one of {', '.join(TOPICS)}"
        raise ValueError(message)
    return f"{kind}/{owner}"


def stream_kind(subject: str) -> str:
    """`rollout/<uuid>` -> `rollout`. ValueError for an unknown kind."""
    kind = subject.partition("/")[0]
    if kind not in TOPICS:
        message = f"unknown kind of stream {subject!r}; use one of {', '.join(TOPICS)}"
        raise ValueError(message)
    return kind


@lru_cache(maxsize=4096)
def stream_owner(subject: str) -> UUID:
    """`rollout/<uuid>` -> the uuid. Cached, because it is called for every event."""
    return UUID(subject.partition("/")[2])


def topic_of(subject: str, prefix: str) -> str:
    """The topic of a stream."""
    return prefix + TOPICS[stream_kind(subject)]


def entity_of(subject: str, payload: Payload) -> tuple[str, UUID] | None:
    """(table, id) of the entity that a payload updates; None if it updates no status row."""
    entity = payload.ENTITY
    if entity is None:
        return None
    if entity == "step":
        return "step", payload.step_id  # type: ignore[attr-defined]  # tested: all step payloads have it
    if entity == "group":
        return "group", payload.group_id  # type: ignore[attr-defined]  # tested: all group payloads have it
    if entity == evaluation.BY_KIND:
        kind = payload.kind  # type: ignore[attr-defined]  # tested: all evaluation payloads have it
        return ("baseline" if kind == "baseline" else "eval"), stream_owner(subject)
    return entity, stream_owner(subject)
