"""Which projector takes which event, which streams may contain it, and the catalogue's hash."""

import hashlib
from functools import cache
from itertools import product
from pathlib import Path

from consumers.fold.projectors.annotation import AnnotationProjector
from consumers.fold.projectors.completion import CompletionProjector
from consumers.fold.projectors.entry import EntryProjector
from consumers.fold.projectors.environment import EnvironmentProjector
from consumers.fold.projectors.evaluation import EvaluationProjector
from consumers.fold.projectors.group import GroupProjector
from consumers.fold.projectors.projector import Projector
from consumers.fold.projectors.rollout import RolloutProjector
from consumers.fold.projectors.scoring import ScoringProjector
from consumers.fold.projectors.session import SessionProjector
from consumers.fold.projectors.skills import SkillsProjector
from consumers.fold.projectors.step import SampleProjector, StepProjector
from consumers.fold.projectors.task import TaskProjector, ValidatorProjector
from consumers.fold.projectors.training import (
    CheckpointProjector,
    SupersedingProjector,
    TrainingProjector,
)
from consumers.fold.projectors.turn import TurnProjector
from consumers.fold.projectors.validation import ValidationProjector
from consumers.tables import PROJECTION_VERSION
from schemas.annotation import TrainingAnnotated
from schemas.base import Payload
from schemas.catalogue import PAYLOADS, TOPICS
from schemas.checkpoint import CheckpointSaved
from schemas.completion import CompletionExecuted, CompletionStepsScored
from schemas.decision import DECISIONS
from schemas.entry import EntryStated
from schemas.evaluation import BY_KIND, EvaluationSuperseded
from schemas.group import GroupDropped
from schemas.json_schemas import FOLDER, schema_path
from schemas.scoring import RolloutScored, ScoringCreated, ScoringFinished
from schemas.session import SessionEnded
from schemas.skills import SkillsMeasured
from schemas.status import MACHINES
from schemas.step import SamplesChosen
from schemas.task import TaskStated, ValidatorStated
from schemas.training import StepSuperseded
from schemas.turn import TurnTaken
from schemas.validation import ValidationRecorded

_BY_ENTITY: dict[str, Projector] = {
    "training": TrainingProjector(),
    "step": StepProjector(),
    "group": GroupProjector(),
    "rollout": RolloutProjector(),
    "environment": EnvironmentProjector(),
    BY_KIND: EvaluationProjector(),
}
_BY_PAYLOAD: dict[type[Payload], Projector] = {
    TurnTaken: TurnProjector(),
    StepSuperseded: SupersedingProjector(),
    CheckpointSaved: CheckpointProjector(),
    SamplesChosen: SampleProjector(),
    GroupDropped: GroupProjector(),
    EvaluationSuperseded: EvaluationProjector(),
    ValidationRecorded: ValidationProjector(),
    TaskStated: TaskProjector(),
    ValidatorStated: ValidatorProjector(),
    EntryStated: EntryProjector(),
    SessionEnded: SessionProjector(),
    **dict.fromkeys((CompletionExecuted, CompletionStepsScored), CompletionProjector()),
    SkillsMeasured: SkillsProjector(),
    TrainingAnnotated: AnnotationProjector(),
    **dict.fromkeys((ScoringCreated, RolloutScored, ScoringFinished), ScoringProjector()),
}


def _projector_of(payload: type[Payload]) -> Projector:
    return _BY_PAYLOAD[payload] if payload in _BY_PAYLOAD else _BY_ENTITY[str(payload.ENTITY)]


_HOMES: dict[str, frozenset[str]] = {
    "training": frozenset({"training"}),
    "step": frozenset({"training"}),
    "checkpoint": frozenset({"training"}),
    "task": frozenset({"training", "evaluation"}),
    "validator": frozenset({"training", "evaluation"}),
    "entry": frozenset({"training", "evaluation"}),
    "group": frozenset({"training", "evaluation"}),
    "evaluation": frozenset({"evaluation"}),
    "rollout": frozenset({"rollout"}),
    "session": frozenset({"rollout"}),
    "completion": frozenset({"rollout"}),
    "validation": frozenset({"rollout", "scoring"}),
    "environment": frozenset({"environment"}),
    "annotation": frozenset({"annotation"}),
    "scoring": frozenset({"scoring"}),
    "operator": frozenset(TOPICS),
}
"""Second word of an event type -> kinds of streams that may contain it."""
HOMES: dict[type[Payload], frozenset[str]] = {
    payload: _HOMES[payload.TYPE.split(".")[1]] for payload in PAYLOADS
}

PROJECTORS: dict[type[Payload], Projector] = {
    payload: _projector_of(payload) for payload in PAYLOADS if payload not in DECISIONS
}
"""Every payload's projector; a payload without one fails here, at import. Decisions are about a
stream's records (`fold.order`), and have no rows."""


@cache
def catalogue_hash(folder: Path = FOLDER) -> str:
    """Hash of the events that this code can apply: types, versions, what their fields may hold.

    When it changes, parked records are tried again. `folder`: the JSON Schemas.
    """
    schemas = sorted(
        schema_path(payload.TYPE, payload.VERSION, folder).read_text(encoding="utf-8")
        for payload in PAYLOADS
    )
    machines = [
        f"{entity} {old} {new}"
        for entity, machine in sorted(MACHINES.items())
        for old, new in product(sorted(machine.states), repeat=2)
        if machine.allows(old, new)
    ]
    known = [str(PROJECTION_VERSION), *schemas, *machines]
    return hashlib.sha256("\n".join(known).encode()).hexdigest()
