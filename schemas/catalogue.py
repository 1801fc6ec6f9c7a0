"""Every payload there is, by type and version; which topic its streams lie in.

Which entity it is about.
"""

from functools import lru_cache
from uuid import UUID

from schemas import (
    checkpoint,
    environment,
    evaluation,
    group,
    rollout,
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
    task.TaskStated,
    task.ValidatorStated,
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
    environment.EnvironmentRequested,
    environment.EnvironmentCreationStarted,
    environment.EnvironmentStarted,
    environment.EnvironmentTerminated,
    environment.EnvironmentFailed,
    evaluation.EvaluationCreated,
    evaluation.EvaluationStarted,
    evaluation.EvaluationProgressed,
    evaluation.EvaluationFinished,
    evaluation.EvaluationFailed,
    evaluation.EvaluationCancelled,
    evaluation.EvaluationSuperseded,
    checkpoint.CheckpointSaved,
)

BY_TYPE: dict[tuple[str, int], type[Payload]] = {
    (payload.TYPE, payload.VERSION): payload for payload in PAYLOADS
}

TOPICS: dict[str, str] = {
    "training": "training",
    "evaluation": "training",
    "rollout": "rollouts",
    "environment": "rollouts",
    "scoring": "rollouts",
}
"""Kind of stream -> topic, without the installation's prefix (`CUA_TOPIC_PREFIX`, default `cua.`).
"""

TOPIC_NAMES: tuple[str, ...] = ("training", "rollouts")
NUM_PARTITIONS = 12
"""Of a topic that we create; fixed for its life."""


def stream(kind: str, owner: UUID) -> str:
    """The subject of a stream: `rollout/<uuid>`."""
    if kind not in TOPICS:
        message = f"expected a stream of {', '.join(TOPICS)}, found {kind!r}"
        raise ValueError(message)
    return f"{kind}/{owner}"


def stream_kind(subject: str) -> str:
    """`rollout/<uuid>` -> `rollout`; ValueError when it is no stream of ours."""
    kind = subject.partition("/")[0]
    if kind not in TOPICS:
        message = f"expected a stream of {', '.join(TOPICS)}, found {subject!r}"
        raise ValueError(message)
    return kind


@lru_cache(maxsize=4096)
def stream_owner(subject: str) -> UUID:
    """`rollout/<uuid>` -> the uuid. Remembered, because every event of a stream asks."""
    return UUID(subject.partition("/")[2])


def topic_of(subject: str, prefix: str) -> str:
    """The topic that a stream lies in."""
    return prefix + TOPICS[stream_kind(subject)]


def entity_of(subject: str, payload: Payload) -> tuple[str, UUID] | None:
    """The entity whose row a payload changes: (table, id).

    None for facts without one (task, samples, superseded ...).
    """
    entity = payload.ENTITY
    if entity is None:
        return None
    if entity == "step":
        return "step", payload.step_id  # type: ignore[attr-defined]  # every payload of a step has it (tested)
    if entity == "group":
        return "group", payload.group_id  # type: ignore[attr-defined]  # every payload of a group has it (tested)
    if entity == evaluation.BY_KIND:
        kind = payload.kind  # type: ignore[attr-defined]  # every payload of an evaluation has it (tested)
        return ("baseline" if kind == "baseline" else "eval"), stream_owner(subject)
    return entity, stream_owner(subject)
