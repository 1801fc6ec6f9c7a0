"""The interface Learner: a policy that can be updated, saved and restored. Imports no torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from producer.algorithms.settings import UpdateSettings
from producer.policy.policy import Policy, PublishedPolicy, Turn
from producer.task import Task

TokenNumbers = tuple[tuple[float, ...], ...]
"""Per turn, per completion token."""


@dataclass(frozen=True, slots=True)
class RolloutOutcome:
    """How a rollout ended; read by advantages that the update computes (gae, prime)."""

    group: int
    """Equal for rollouts of one task."""
    reward: float
    is_right: bool
    token_rewards: TokenNumbers | None = None
    """None: `reward` on the last completion token, and 0 on those before."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One rollout to train on."""

    task: Task
    turns: tuple[Turn, ...]
    """Each with tokens."""
    advantage: float | TokenNumbers
    """Of every completion token, or of each; not read where the update computes advantages."""
    outcome: RolloutOutcome
    is_trained: bool = True
    """False: its tokens are measured (KL, entropy) and change nothing."""

    def __post_init__(self) -> None:
        """ValueError for numbers of tokens that do not fit the turns' completions."""
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
        """Completion tokens."""
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
    """How far the log-probs that were recorded when tokens were sampled are from the learner's."""

    mean: float
    """mean |logp_sampled - logp_learner|, nats."""
    largest: float
    effective_share: float
    """Effective sample size (sum w)^2 / sum w^2 of the importance weights w = p_learner / p_sampled
    of tokens, over their number; 1: no gap."""


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """Measurements of one update."""

    loss: float
    """With the aggregation `sum` the sum over substeps (tinker-cookbook's semantics), else their
    mean."""
    kl_sample_train_v1: float
    """mean(logp_sampled - logp_trained) over the completion tokens of all trajectories, measured
    before each substep's optimiser step, nats."""
    kl_sample_train_v2: float
    """0.5 * mean((logp_sampled - logp_trained)^2)."""
    entropy: float
    """-mean(logp_sampled)."""
    gradient_norm: float
    """Global L2 norm before clipping, mean over substeps; NaN: a service did not say."""
    num_tokens: int
    """Completion tokens that were trained on."""
    seconds: float
    num_measured_tokens: int = 0
    """Completion tokens of all trajectories; 0: KL and entropy are NaN or 0."""
    loss_per_token: float = 0.0
    """Mean of the policy's loss over the trained tokens, whatever the aggregation, without KL."""
    kl_policy_base: float | None = None
    """mean(logp_sampled - logp_base) over all trajectories; None: no KL penalty."""
    kl_pre_post_v1: float | None = None
    kl_pre_post_v2: float | None = None
    """As kl_sample_train, but of the policy after the update; None: not asked for."""
    sampler_gap: SamplerGap | None = None
    """Of what sampled and the network that is trained, before the first optimiser step; None:
    nothing was measured."""
    clip_fraction: float | None = None
    """Share of the trained tokens whose probability ratio the loss cut, over all passes; None: it
    cuts none, or nothing was trained on."""
    largest_ratio: float | None = None
    """Of current to sampled probability of a trained token, over all passes; None: nothing was
    trained on, or a service did not say."""
    clipped_gradient_norm: float | None = None
    """As gradient_norm, after clipping; None: a service did not say."""
    peak_memory_bytes: int | None = None
    """The most that tensors took on an accelerator since the update before, sampling included;
    None: on a processor."""
    estimated_memory_bytes: int | None = None
    """What was computed for it before the run; None: not known."""
    learned: "LearnedAdvantages | None" = None
    """None: the advantages were given, or nothing was trained on."""


@dataclass(frozen=True, slots=True)
class LearnedAdvantages:
    """Advantages that an update computed, and measurements of the weights that it took for it."""

    means: tuple[float | None, ...]
    """Of each trajectory, in order, the mean over its tokens, whitened, before any KL penalty; None
    where it is not trained on or has no token."""
    metrics: Mapping[str, float | None]
    """By their names among a step's."""
    repeated: Mapping[str, float]
    """The metrics that an update made again must repeat bit for bit."""


class Learner(Policy, Protocol):
    """A policy with an optimiser."""

    def update(self, trajectories: Sequence[Trajectory], settings: UpdateSettings) -> UpdateResult:
        """One policy-gradient update; increments `version`.

        An empty batch changes no weights and still increments `version`.
        """
        ...

    def save_state(self, folder: Path) -> None:
        """Write adapter, optimiser and version into an existing folder; synced on return."""
        ...

    def load_state(self, folder: Path) -> None:
        """Restore what `save_state` wrote, bit for bit."""
        ...

    def save_checkpoint(self, folder: Path) -> str:
        """Write the adapter in PEFT's layout; returns the sha256 of its weights file, hex."""
        ...


@runtime_checkable
class LendingLearner(Learner, Protocol):
    """A learner that can be sampled from in the midst of an update."""

    def update_in_parts(
        self,
        trajectories: Sequence[Trajectory],
        settings: UpdateSettings,
        lend: Callable[[], None] | None,
    ) -> UpdateResult:
        """As `update`, with the same bits; calls `lend` on the caller's thread now and then.

        Inside it `sample` and `forget` may be called: the weights are those before the update.
        """
        ...


@runtime_checkable
class PublishingLearner(Learner, Protocol):
    """A learner whose versions servers can have, for other processes to sample."""

    def publish(self) -> PublishedPolicy:
        """Load this version into the servers. ValueError without servers."""
        ...
