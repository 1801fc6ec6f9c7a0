"""The tables: 24 folded from the log, the projection's own, and those of `cua_ops`."""

from consumers.tables.annotation import Annotation
from consumers.tables.base import (
    FIRST_PROJECTION_VERSION,
    OPS_SCHEMA,
    OUTDATED,
    PROJECTION_VERSION,
    SCHEMA,
    Base,
)
from consumers.tables.completion import Completion, CompletionScore, StepScore
from consumers.tables.entry import Entry
from consumers.tables.environment import Environment
from consumers.tables.evaluation import Baseline, Eval
from consumers.tables.group import Group
from consumers.tables.history import StatusHistory
from consumers.tables.operations import Lease
from consumers.tables.projection import (
    Projection,
    ReaderPosition,
    StreamState,
    UnappliedRecord,
)
from consumers.tables.rollout import Rollout
from consumers.tables.scoring import Score, Scoring
from consumers.tables.session import AgentSession
from consumers.tables.skills import SkillSuccess
from consumers.tables.task import Task, Validator
from consumers.tables.training import Sample, Step, Training
from consumers.tables.turn import Action, Obs, Turn
from consumers.tables.validation import Validation

ROW_TABLES: tuple[type[Base], ...] = (
    Training,
    Baseline,
    Eval,
    Task,
    Validator,
    Step,
    Group,
    Rollout,
    Turn,
    Action,
    Obs,
    Validation,
    Environment,
    Sample,
    StatusHistory,
    Annotation,
    Scoring,
    Score,
    Entry,
    AgentSession,
    Completion,
    CompletionScore,
    StepScore,
    SkillSuccess,
)
"""What users read and verify compares."""

STATE_TABLES: tuple[type[Base], ...] = (
    Projection,
    ReaderPosition,
    StreamState,
    UnappliedRecord,
)
"""The projection's own, in the same schema."""

OPS_TABLES: tuple[type[Base], ...] = (Lease,)

__all__ = [
    "FIRST_PROJECTION_VERSION",
    "OPS_SCHEMA",
    "OPS_TABLES",
    "OUTDATED",
    "PROJECTION_VERSION",
    "ROW_TABLES",
    "SCHEMA",
    "STATE_TABLES",
    "Action",
    "AgentSession",
    "Annotation",
    "Base",
    "Baseline",
    "Completion",
    "CompletionScore",
    "Entry",
    "Environment",
    "Eval",
    "Group",
    "Lease",
    "Obs",
    "Projection",
    "ReaderPosition",
    "Rollout",
    "Sample",
    "Score",
    "Scoring",
    "SkillSuccess",
    "StatusHistory",
    "Step",
    "StepScore",
    "StreamState",
    "Task",
    "Training",
    "Turn",
    "UnappliedRecord",
    "Validation",
    "Validator",
]
