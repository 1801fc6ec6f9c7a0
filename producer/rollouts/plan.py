"""What is to be rolled out, and what came of it.

Frozen data between the loop and the rollout engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

from producer.policy.learner import TrainedTurn
from producer.task import Task
from schemas.group import SourceType


@dataclass(frozen=True, slots=True)
class RolloutSource:
    """What rollouts belong to: a step, an eval or a baseline."""

    type: SourceType
    id: UUID
    label: str
    """In rollout names: `step-3`, `eval-20`, `baseline`."""
    generation: int
    batch: int
    """Position in the task data; 0 for evaluations."""
    stream: str
    """Where the facts of its groups go: `training/<id>` or `evaluation/<id>`."""


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """One attempt at one place of a group."""

    name: str
    """The text id."""
    id: UUID
    source: RolloutSource
    group_id: UUID
    group_num: int
    env_index: int
    attempt: int
    task: Task
    task_row_id: UUID
    validator_row_id: UUID | None
    max_turns: int
    temperature: float
    seed: int
    """Of the environment: shared by a group, so that its rollouts begin alike."""
    sampling_seed: int
    """Of this rollout's completions."""


@dataclass(frozen=True, slots=True)
class RolloutResult:
    """What an attempt came to."""

    plan: RolloutPlan
    status: Literal["completed", "failed", "cancelled"]
    success: bool
    reward: float
    """0 when not completed, and not to be used then."""
    num_turns: int
    num_tokens: int
    """Completion tokens."""
    policy_version: int
    """Of the first turn."""
    turns: tuple[TrainedTurn, ...]
    """Empty for a scripted policy or a failed attempt."""
    num_parse_errors: int
    turn_seconds: float
    """Sum of the turns' durations."""
    error_type: str | None = None
    error_message: str | None = None

    @property
    def is_scored(self) -> bool:
        """Whether its reward counts."""
        return self.status == "completed"


GroupPlace = tuple[int, int]
"""(group_num, env_index)."""


@dataclass(frozen=True, slots=True)
class StatedTask:
    """A task whose definition is in the log."""

    task: Task
    row_id: UUID
    validator_row_id: UUID | None


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """Rollouts of one task that belong together."""

    num: int
    id: UUID
    stated: StatedTask
    seeds: tuple[int, ...]
    """Environment seed of each place."""


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """A group that has ended."""

    plan: GroupPlan
    results: tuple[RolloutResult, ...]
    """Scored rollouts, by place."""
    is_failed: bool


@dataclass(frozen=True, slots=True)
class Recalled:
    """What the log already has of a source."""

    results: Mapping[GroupPlace, RolloutResult] = field(default_factory=dict)
    next_attempt: Mapping[GroupPlace, int] = field(default_factory=dict)
    statuses: Mapping[UUID, str] = field(default_factory=dict)
    """Of groups."""
