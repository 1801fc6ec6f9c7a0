"""The interface Learner: a policy that can be updated, saved and restored. Imports no torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from producer.algorithms.names import AggregationName, KlName, KlPlace, LossName
from producer.policy.policy import Policy, Turn
from producer.task import Task

TokenNumbers = tuple[tuple[float, ...], ...]
"""Per turn, per completion token."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """How a rollout ended, for advantages that compare it with others of its group (prime)."""

    group: int
    """Equal for attempts at one task."""
    reward: float
    is_right: bool


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One rollout to train on."""

    task: Task
    turns: tuple[Turn, ...]
    """Each with tokens."""
    advantage: float
    """Applied to every completion token of the rollout, unless one of the three below is given."""
    is_trained: bool = True
    """False: its tokens are measured (KL, entropy) and change nothing."""
    token_advantages: TokenNumbers | None = None
    """Advantages that differ between tokens; None: `advantage` is every token's."""
    token_rewards: TokenNumbers | None = None
    """Rewards of tokens, for advantages that need the learner's values (gae); None: no such."""
    attempt: Attempt | None = None
    """For advantages that need the learner's reward model (prime); None: no such."""

    def __post_init__(self) -> None:
        """ValueError if two of them are given, or one that does not fit the turns' completions."""
        names = ("token_advantages", "token_rewards", "attempt")
        several = [name for name in names if getattr(self, name) is not None]
        if len(several) > 1:
            message = f"a trajectory has {' and '.join(several)}; give one of them"
            raise ValueError(message)
        expected = [len(turn.tokens.completion_tokens) for turn in self.turns]
        for name in ("token_advantages", "token_rewards"):
            given: TokenNumbers | None = getattr(self, name)
            if given is not None and [len(numbers) for numbers in given] != expected:
                message = (
                    f"{name} needs one number per completion token, {expected} in the turns; found"
                    f" {[len(numbers) for numbers in given]}"
                )
                raise ValueError(message)

    @property
    def num_tokens(self) -> int:
        """Completion tokens."""
        return sum(len(turn.tokens.completion_tokens) for turn in self.turns)


@dataclass(frozen=True, slots=True)
class UpdateSettings:
    """Settings of one update."""

    loss: LossName
    learning_rate: float
    """Of this step; a warm-up is the caller's."""
    num_substeps: int
    """Optimiser steps per batch, each on an equal share of the shuffled trajectories."""
    temperature: float
    """Of the distribution that the trajectories were sampled from."""
    kl_penalty_coef: float
    """Weight of the KL penalty against the base policy; 0: none."""
    seed: int
    """Of the shuffle."""
    kl_estimator: KlName = "k1"
    """Of the penalty."""
    kl_in: KlPlace = "advantage"
    """What the penalty is a term of."""
    clip_low: float = 0.2
    clip_high: float = 0.2
    """Losses that clip keep the probability ratio in [1 - clip_low, 1 + clip_high]."""
    dual_clip: float | None = None
    """ppo: largest ratio that counts where the advantage is negative; None: none."""
    aggregation: AggregationName = "sum"
    """Of the tokens' losses within an optimiser step."""
    ppo_epochs: int = 1
    """Passes over the batch, each of `num_substeps` optimiser steps; measured in the first."""
    weight_decay: float = 0.0
    """Of AdamW, on the policy's trained weights."""
    entropy_coef: float = 0.0
    """Weight of the tokens' entropy, which is aggregated as the loss and subtracted from it."""
    compute_post_kl: bool = False
    """Whether to measure the same tokens again after the update."""
    max_gradient_norm: float | None = None
    """Gradients are clipped to this global L2 norm, those of the value head and the reward model
    each apart; None: not clipped."""
    gae_gamma: float = 1.0
    gae_lambda: float = 1.0
    """Of the advantages of trajectories with `token_rewards`; the others read no field from here to
    `value_learning_rate` (verl: algorithm.gamma, algorithm.lam)."""
    value_clip: float | None = 0.5
    """A predicted value counts at most this far from the one before the update; None: no bound
    (verl: critic.cliprange_value)."""
    value_coef: float = 0.0
    """Weight of the value loss in the adapter's gradient. The head is trained on it in any case; 0:
    the adapter is not, as verl's critic is a network of its own."""
    value_learning_rate: float = 1e-3
    """Of the value head."""
    prime_beta: float = 0.05
    """Weight of a log-ratio in its reward; trajectories without `attempt` read no field from here
    on (verl: reward_model.model.beta_train)."""
    prime_process_coef: float = 5.0
    prime_outcome_coef: float = 5.0
    """Of process and outcome in the returns (verl: algorithm.reward_dpo_coef, reward_gt_coef)."""
    prime_learning_rate: float = 1e-4
    """Of the reward model's adapter."""


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
    """Global L2 norm before clipping, mean over substeps."""
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
    value: "ValueResult | None" = None
    """Of the value head; None: no trajectory that is trained on has `token_rewards`."""
    prime: "PrimeResult | None" = None
    """Of the reward model; None: no trajectory that is trained on has `attempt`."""

    @property
    def computed(self) -> "ValueResult | PrimeResult | None":
        """Of the advantages that the update computed itself; None: they were given."""
        return self.value or self.prime


@dataclass(frozen=True, slots=True)
class ValueResult:
    """What an update with a value head came to."""

    advantages: tuple[float | None, ...]
    """Of each trajectory, in order, the mean over its tokens, whitened, before any KL penalty; None
    where it is not trained on or has no token."""
    loss_per_token: float
    """Mean of the value loss over the trained tokens, whatever the aggregation."""
    clip_fraction: float
    """Share of the trained tokens whose value was clipped in the loss."""
    mean: float
    """Of the values before the update, over the trained tokens."""
    explained_variance: float | None
    """1 - var(return - value) / var(return) before the update; None: returns are all equal."""
    gradient_norm: float
    """Of the head, before clipping, mean over substeps."""

    @property
    def metrics(self) -> dict[str, float | None]:
        """By their names among a step's."""
        return {
            "optim/value_loss": self.loss_per_token,
            "optim/value_clip_fraction": self.clip_fraction,
            "optim/value_mean": self.mean,
            "optim/value_explained_variance": self.explained_variance,
            "optim/value_gradient_norm": self.gradient_norm,
        }

    @property
    def compared(self) -> dict[str, float]:
        """Metrics that an update made again must repeat bit for bit."""
        return {"optim/value_loss": self.loss_per_token}


@dataclass(frozen=True, slots=True)
class PrimeResult:
    """What an update with an implicit reward model came to."""

    advantages: tuple[float | None, ...]
    """As of `ValueResult`."""
    loss: float
    """Cross-entropy of the reward model with the outcomes before its own step, mean over the
    trained trajectories, nats."""
    accuracy: float
    """Share of the trained trajectories whose outcome it told before its step: a positive sum of
    log-ratios for a right one, else not."""
    reward_mean: float
    """Of the process rewards after its step, over the trained tokens."""
    gradient_norm: float
    """Of its adapter, before clipping."""

    @property
    def metrics(self) -> dict[str, float | None]:
        """By their names among a step's."""
        return {
            "prime/loss": self.loss,
            "prime/accuracy": self.accuracy,
            "prime/reward_mean": self.reward_mean,
            "prime/gradient_norm": self.gradient_norm,
        }

    @property
    def compared(self) -> dict[str, float]:
        """Metrics that an update made again must repeat bit for bit."""
        return {"prime/loss": self.loss, "prime/reward_mean": self.reward_mean}


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


class StreamedUpdate(Protocol):
    """An update whose minibatches come one after the other, while the policy is sampled from.

    The weights change in `finish` alone. An update that is never finished changes nothing.
    """

    def add(self, trajectories: Sequence[Trajectory]) -> None:
        """The next minibatch; may be empty."""
        ...

    def work(self) -> bool:
        """Compute one part of the minibatches that are here; False: there was none."""
        ...

    def finish(self) -> UpdateResult:
        """Compute what is left and take the optimiser steps; increments `version`. Once."""
        ...


@runtime_checkable
class StreamingLearner(Learner, Protocol):
    """A learner whose update can begin before all of its trajectories are here."""

    def begin_update(self, settings: UpdateSettings, num_minibatches: int) -> StreamedUpdate:
        """`num_minibatches` of each of the `num_substeps` optimiser steps, in the order added.

        Without advantages that need values, nor a KL penalty in the advantages.
        """
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
