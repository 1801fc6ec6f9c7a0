"""Plans and results of rollouts and groups: frozen data between the loop and the engine."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from producer.policy.policy import Turn
from producer.task import Task
from schemas.base import Payload
from schemas.completion import CompletionStepsScored, StepScore
from schemas.group import SourceType
from schemas.rollout import RolloutFailed, RolloutFinished

LOST: Final = "worker"
"""`error_type` of an attempt whose worker died; neither agent nor environment failed."""


@dataclass(frozen=True, slots=True)
class RolloutSource:
    """What rollouts belong to: a step, an eval or a baseline."""

    type: SourceType
    id: UUID
    label: str
    """Prefix in rollout names: `step-3`, `eval-20`, `baseline`."""
    generation: int
    batch: int
    """Position in the task data; 0 for evaluations."""
    stream: str
    """Stream for the events of its groups: `training/<id>` or `evaluation/<id>`."""


@dataclass(frozen=True, slots=True)
class StatedTask:
    """A task whose definition is recorded in the log."""

    task: Task
    row_id: UUID
    validator_row_id: UUID | None
    entry_row_id: UUID | None = None
    """Row id of the entry that the task is made from; None if it has no entry."""


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """One attempt at one place of a group."""

    name: str
    """The rollout's text id (column rollout_id)."""
    id: UUID
    source: RolloutSource
    group_id: UUID
    group_num: int
    env_index: int
    attempt: int
    stated: StatedTask
    max_turns: int
    temperature: float
    seed: int
    """Environment seed; shared by a group, so that its rollouts start from the same screen."""
    sampling_seed: int
    """Seed of this rollout's completions; each turn derives its own from it. A retry after a failed
    attempt gets a new seed; an attempt after a killed process keeps it."""
    top_p: float = 1.0
    """See `SampleRequest.top_p`."""
    recorded: tuple[Turn, ...] = ()
    """Turns of this episode recorded before its process ended, each with the policy version that
    took it. On a simulated device they are replayed and the episode continues from there; on any
    other device it starts again."""

    @property
    def task(self) -> Task:
        """The task that is attempted."""
        return self.stated.task


@dataclass(frozen=True, slots=True)
class RolloutResult:
    """The end of one attempt."""

    plan: RolloutPlan
    end: RolloutFinished | RolloutFailed
    policy_version: int
    """Policy version of the first turn."""
    turn_seconds: float
    """Sum of the durations of the turns."""
    turns: tuple[Turn, ...] = ()
    """Turns that have tokens; empty for a scripted policy or a failed attempt."""
    responses: tuple[str, ...] = ()
    """The policy's text in each turn."""
    words: tuple[str | None, ...] = ()
    """The environment's text before each turn except the first."""
    scored_steps: tuple[StepScore, ...] = ()
    """A process reward model's scores of the completion's steps; empty if it was not asked."""

    @property
    def failure(self) -> RolloutFailed | None:
        """How the attempt failed; None if it completed and its reward counts."""
        return self.end if isinstance(self.end, RolloutFailed) else None

    @property
    def finished(self) -> RolloutFinished:
        """How the attempt completed. Raises ValueError if it failed."""
        if isinstance(self.end, RolloutFinished):
            return self.end
        message = f"{self.plan.name} broke off and has no reward"
        raise ValueError(message)

    @property
    def is_scored(self) -> bool:
        """Whether its reward counts."""
        return self.failure is None

    @property
    def success(self) -> bool:
        """Whether a completed attempt solved the task."""
        return self.finished.task_success

    @property
    def reward(self) -> float:
        """Reward of a completed attempt."""
        return self.finished.reward

    def with_verdict(self, reward: float, *, success: bool) -> "RolloutResult":
        """Return a copy of a completed attempt with another verdict and reward."""
        changed = {"reward": reward, "task_success": success}
        return replace(self, end=self.finished.model_copy(update=changed))

    @property
    def num_turns(self) -> int:
        """Number of turns taken."""
        return self.end.num_turns

    @property
    def num_tokens(self) -> int:
        """Number of completion tokens of a completed attempt."""
        return self.finished.num_tokens

    @property
    def num_prompt_tokens(self) -> int | None:
        """Sum over turns of the whole prompt's tokens, with screenshots; None if not recorded."""
        number = self.finished.summary.get("num_prompt_tokens")
        return number if isinstance(number, int) else None

    @property
    def token_rewards(self) -> tuple[float, ...]:
        """Rewards of the completion's tokens from a user's reward manager; empty without one."""
        rewards = self.finished.summary.get("token_rewards")
        return tuple(float(str(reward)) for reward in rewards) if isinstance(rewards, list) else ()


def scored_steps(facts: Iterable[Payload]) -> tuple[StepScore, ...]:
    """Step scores of the first scoring; later scorings of the same completion are ignored."""
    scored = (fact.steps for fact in facts if isinstance(fact, CompletionStepsScored))
    return next(scored, ())


GroupPlace = tuple[int, int]
"""(group_num, env_index)."""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """Rollouts of one task that belong together."""

    num: int
    id: UUID
    stated: StatedTask
    seeds: tuple[int, ...]
    """Environment seed of each place."""
    has_baseline: bool = False
    """Whether the last place is a greedy rollout that the others are compared with (remax)."""

    @property
    def baseline_index(self) -> int | None:
        """The greedy rollout's place; None if there is none."""
        return len(self.seeds) - 1 if self.has_baseline else None

    @property
    def num_compared(self) -> int:
        """Number of places whose rollouts count in rewards and success."""
        return len(self.seeds) - self.has_baseline


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """The result of a group."""

    plan: GroupPlan
    results: tuple[RolloutResult, ...]
    """Scored rollouts, by place, without the baseline."""
    is_failed: bool
    errors: tuple[str, ...] = ()
    """`error_type` of every failed attempt."""
    baseline: RolloutResult | None = None
    """The greedy rollout; None if the plan has none or it was given up."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """What earlier processes recorded of a source, read back from the log."""

    results: Mapping[GroupPlace, RolloutResult] = field(default_factory=dict)
    """Results of the places with a scored rollout."""
    next_attempt: Mapping[GroupPlace, int] = field(default_factory=dict)
    """Next attempt number of each place that was attempted."""
    num_failed: Mapping[GroupPlace, int] = field(default_factory=dict)
    """Failed attempts of each place, not counting those that ended with their process."""
    errors: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """group_num -> `error_type` of its failed attempts."""
    turns: Mapping[GroupPlace, tuple[Turn, ...]] = field(default_factory=dict)
    """Turns of each rollout that was running; with `with_turns`, also of those in `results`."""
