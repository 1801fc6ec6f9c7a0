"""The interface Learner: a policy that can be updated, saved and restored. Imports no torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from producer.algorithms.settings import UpdateSettings
from producer.policy.policy import Policy, PublishedPolicy, Turn
from producer.task import Task

TokenNumbers = tuple[tuple[float, ...], ...]
"""One number per completion token, for each turn."""


@dataclass(frozen=True, slots=True)
class RolloutOutcome:
    """How a rollout ended; used by advantages that the update computes (gae, prime)."""

    group: int
    """Group number; rollouts of one task share it."""
    reward: float
    is_right: bool
    token_rewards: TokenNumbers | None = None
    """Reward of each token. None: `reward` on the last completion token, 0 on the others."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One rollout to train on."""

    task: Task
    turns: tuple[Turn, ...]
    """Turns, all with tokens."""
    advantage: float | TokenNumbers
    """One number for all completion tokens, or one per token. Ignored if the update computes
    advantages."""
    outcome: RolloutOutcome
    is_trained: bool = True
    """False: the tokens are only measured (KL, entropy) and do not affect the weights."""

    def __post_init__(self) -> None:
        """Raises ValueError if per-token numbers do not match the turns' completions."""
        expected = [len(turn.tokens.completion_tokens) for turn in self.turns]
        for name, given in (
            ("advantage", self.advantage),
            ("token_rewards", self.outcome.token_rewards),
        ):
            if isinstance(given, tuple) and [len(numbers) for numbers in given] != expected:
                message = (
                    f"{name} needs one number per completion token, {expected} in the turns; found"
                    f" {[len(numbers) for numbers in given]}"
                )
                raise ValueError(message)

    @property
    def num_tokens(self) -> int:
        """Number of completion tokens."""
        return sum(len(turn.tokens.completion_tokens) for turn in self.turns)

    @property
    def flat_rewards(self) -> list[float]:
        """The reward of each completion token, over all turns in order."""
        if self.outcome.token_rewards is not None:
            return [reward for turn in self.outcome.token_rewards for reward in turn]
        zeros = [0.0] * max(0, self.num_tokens - 1)
        return [*zeros, self.outcome.reward] if self.num_tokens else []


@dataclass(frozen=True, slots=True)
class SamplerGap:
    """Difference between the log-probs recorded while sampling and the learner's own."""

    mean: float
    """mean |logp_sampled - logp_learner|, nats."""
    largest: float
    effective_share: float
    """Effective sample size (sum w)^2 / sum w^2 of the importance weights w = p_learner /
    p_sampled, divided by the number of tokens; 1 means no gap."""


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """Measurements of one update."""

    loss: float
    """Loss over all substeps: their sum with the aggregation `sum` (as in tinker-cookbook),
    otherwise their mean."""
    kl_sample_train_v1: float
    """mean(logp_sampled - logp_trained) over the completion tokens of all trajectories, measured
    before each substep's optimiser step, nats."""
    kl_sample_train_v2: float
    """0.5 * mean((logp_sampled - logp_trained)^2)."""
    entropy: float
    """-mean(logp_sampled)."""
    gradient_norm: float
    """Global L2 norm before clipping, mean over substeps; NaN if a service does not report it."""
    num_tokens: int
    """Number of completion tokens trained on."""
    seconds: float
    num_measured_tokens: int = 0
    """Number of completion tokens of all trajectories; if 0, KL and entropy are NaN or 0."""
    loss_per_token: float = 0.0
    """Mean policy loss per trained token, whatever the aggregation, without the KL penalty."""
    kl_policy_base: float | None = None
    """mean(logp_sampled - logp_base) over all trajectories; None without a KL penalty."""
    kl_pre_post_v1: float | None = None
    kl_pre_post_v2: float | None = None
    """As `kl_sample_train_v2`, for the policy after the update; None if not requested."""
    sampler_gap: SamplerGap | None = None
    """Gap between the sampler and the trained network before the first optimiser step; None if
    nothing was measured."""
    clip_fraction: float | None = None
    """Share of trained tokens whose probability ratio the loss clipped, over all passes; None if
    the loss does not clip or nothing was trained on."""
    capped_share: float | None = None
    """Share of trained tokens whose importance weight was above `importance_cap`; None without a
    cap or if nothing was trained on."""
    largest_ratio: float | None = None
    """Largest ratio of current to sampled probability of a trained token, over all passes; None if
    nothing was trained on or a service does not report it."""
    clipped_gradient_norm: float | None = None
    """As `gradient_norm`, but after clipping; None if a service does not report it."""
    peak_memory_bytes: int | None = None
    """Peak memory of tensors on the accelerator since the previous update, sampling included; None
    on a CPU."""
    estimated_memory_bytes: int | None = None
    """Peak memory estimated before the run; None if unknown."""
    learned: "LearnedAdvantages | None" = None
    """None if the advantages were given or nothing was trained on."""


@dataclass(frozen=True, slots=True)
class LearnedAdvantages:
    """Advantages that an update computed, and measurements of the weights used for them."""

    means: tuple[float | None, ...]
    """Mean advantage over the tokens of each trajectory, in order, whitened, before any KL penalty.
    None for a trajectory that is not trained on or has no token."""
    metrics: Mapping[str, float | None]
    """Measurements, by their names among the step's metrics."""
    repeated: Mapping[str, float]
    """Metrics that must be bit-identical when the update is recomputed."""


class Learner(Policy, Protocol):
    """A policy with an optimiser."""

    def update(self, trajectories: Sequence[Trajectory], settings: UpdateSettings) -> UpdateResult:
        """Do one policy-gradient update and increment `version`.

        An empty batch changes no weights but still increments `version`.
        """
        ...

    def save_state(self, folder: Path) -> None:
        """Write adapter, optimiser and version to an existing folder, synced to disk."""
        ...

    def load_state(self, folder: Path) -> None:
        """Restore what `save_state` wrote, bit for bit."""
        ...

    def save_checkpoint(self, folder: Path) -> str:
        """Write the adapter in PEFT's layout; returns the hex sha256 of its weights file."""
        ...


@runtime_checkable
class LendingLearner(Learner, Protocol):
    """A learner that can be sampled from during an update."""

    def update_in_parts(
        self,
        trajectories: Sequence[Trajectory],
        settings: UpdateSettings,
        lend: Callable[[], None] | None,
    ) -> UpdateResult:
        """As `update`, with identical bits; calls `lend` on the caller's thread now and then.

        `lend` may call `sample` and `forget`: the weights are still those before the update.
        """
        ...


@runtime_checkable
class PublishingLearner(Learner, Protocol):
    """A learner that can publish its versions to servers, so other processes can sample them."""

    def publish(self) -> PublishedPolicy:
        """Load this version into the servers. Raises ValueError without servers."""
        ...
