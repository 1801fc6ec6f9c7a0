"""All advantages by name, and the functions for those of whole rollouts. Imports no torch.

Every completion token of a rollout gets the rollout's advantage. Functions for advantages that
differ between tokens are in `token_advantages`. Formulas and sources: docs/algorithms.md.

Baselines of REINFORCE are subtracted from the rewards to reduce their variance. Neither changes the
expected gradient much: the moving average uses only earlier steps; the group's mean includes the
rollout itself, as in Dr. GRPO, which scales the gradient by 1 - 1/G.

Axes: B rollouts of one step, G rollouts of one group.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean
from typing import Final, assert_never

from producer.algorithms.names import AdvantageName, BaselineName
from producer.algorithms.settings import GaeSettings, PrimeSettings

STD_EPSILON: Final = 0.05
"""Added to the standard deviation, so that nearly equal rewards do not give huge advantages."""
VERL_EPSILON: Final = 1e-6
"""The corresponding epsilon in verl's GRPO."""
WHITENING_EPSILON: Final = 1e-8
"""Added to the variance when a batch is whitened, as in verl."""


@dataclass(frozen=True, slots=True)
class Rewards:
    """The results of a step's rollouts; all sequences have equal lengths."""

    rewards_B: Sequence[float]
    """Reward of the whole episode."""
    groups_B: Sequence[int]
    """Index of the rollout's group; rollouts of one group attempted the same task."""
    num_tokens_B: Sequence[int]
    """Number of completion tokens."""
    greedy_rewards_B: Sequence[float] | None = None
    """Reward of a greedy rollout of the same task; only `remax` reads it."""
    is_right_B: Sequence[bool] | None = None
    """Whether the rollout solved its task; only `rejection` reads it."""

    def by_group(self) -> dict[int, list[int]]:
        """Group -> indices of its rollouts in B."""
        groups: dict[int, list[int]] = {}
        for at, group in enumerate(self.groups_B):
            groups.setdefault(group, []).append(at)
        return groups


@dataclass(frozen=True, slots=True)
class Advantage:
    """A way to compute advantages, and what it requires of a training."""

    compute: Callable[[Rewards], Sequence[float | None]]
    """Advantages in the order of the rollouts; None for those that the update computes."""
    compares_group: bool = True
    """False: a group of one rollout, or of equal rewards, has a training signal as well."""
    min_group_size: int = 1
    learned: "LearnedWeights | None" = None
    """Weights that the update trains and uses to compute the advantages; None if there are none."""
    reads_token_rewards: bool = False
    """Whether rewards may differ between the tokens of a rollout."""
    is_of_steps: bool = False
    """Whether it rewards the steps of an answer, which requires the agent to answer in steps."""


@dataclass(frozen=True, slots=True)
class LearnedWeights:
    """Weights that an advantage uses in addition to the policy's."""

    title: str
    settings: type[GaeSettings | PrimeSettings]


def group_advantages(rewards_G: Sequence[float], *, divide_by_std: bool = False) -> list[float]:
    """Each reward minus the group's mean, as in Dr. GRPO (arXiv 2503.20783).

    `divide_by_std` also divides by (population standard deviation + `STD_EPSILON`), as in
    DeepSeekMath's GRPO (arXiv 2402.03300) with another epsilon.
    """
    if not rewards_G:
        return []
    mean = sum(rewards_G) / len(rewards_G)
    centered_G = [reward - mean for reward in rewards_G]
    if not divide_by_std:
        return centered_G
    std = sqrt(sum(value * value for value in centered_G) / len(rewards_G))
    return [value / (std + STD_EPSILON) for value in centered_G]


def has_signal(rewards_G: Sequence[float]) -> bool:
    """Whether rewards differ within the group; otherwise there is nothing to compare."""
    return len(set(rewards_G)) > 1


def mean_centered(rewards: Rewards) -> list[float]:
    """tinker-cookbook: reward minus the group's mean; 0 for a rollout alone in its group."""
    return _per_group(rewards, group_advantages)


def mean_centered_by_std(rewards: Rewards) -> list[float]:
    """`mean_centered` divided by (population standard deviation of the group + 0.05)."""
    return _per_group(rewards, lambda rewards_G: group_advantages(rewards_G, divide_by_std=True))


def reinforce(rewards: Rewards) -> list[float]:
    """REINFORCE (Williams 1992): the reward itself; see `baselines` for what is subtracted."""
    return list(rewards.rewards_B)


def grpo(rewards: Rewards) -> list[float]:
    """GRPO (arXiv 2402.03300): (r - mean) / (sd + 1e-6), with the sample sd.

    A rollout alone in its group has mean 0 and sd 1, as in verl.
    """

    def normalized(rewards_G: Sequence[float]) -> list[float]:
        if len(rewards_G) == 1:
            return [rewards_G[0] / (1 + VERL_EPSILON)]
        std = _sample_std(rewards_G) + VERL_EPSILON
        return [value / std for value in group_advantages(rewards_G)]

    return _per_group(rewards, normalized)


def dr_grpo(rewards: Rewards) -> list[float]:
    """Dr. GRPO (arXiv 2503.20783): r - mean; r itself for a rollout alone in its group (verl)."""
    return _per_group(rewards, _alone_as_is(group_advantages))


def rloo(rewards: Rewards) -> list[float]:
    """RLOO (arXiv 2402.14740): r minus the mean of the group's others; r itself if alone."""

    def leave_one_out(rewards_G: Sequence[float]) -> list[float]:
        scale = len(rewards_G) / (len(rewards_G) - 1)
        return [scale * value for value in group_advantages(rewards_G)]

    return _per_group(rewards, _alone_as_is(leave_one_out))


def opo(rewards: Rewards) -> list[float]:
    """OPO (arXiv 2505.23585): r minus the group's length-weighted mean; r itself if alone."""
    advantages_B = list(rewards.rewards_B)
    for places in rewards.by_group().values():
        if len(places) > 1:
            baseline = _weighted_mean(
                [rewards.rewards_B[at] for at in places],
                [rewards.num_tokens_B[at] for at in places],
            )
            for at in places:
                advantages_B[at] -= baseline
    return advantages_B


def gpg(rewards: Rewards) -> list[float]:
    """GPG (arXiv 2504.02546): B / (number of nonzero rewards) * (r - mean of the group)."""
    num_nonzero = sum(reward != 0 for reward in rewards.rewards_B)
    alpha = len(rewards.rewards_B) / max(1, num_nonzero)
    return [alpha * value for value in dr_grpo(rewards)]


def reinforce_plus_plus(rewards: Rewards) -> list[float]:
    """REINFORCE++ (arXiv 2501.03262), gamma 1: rewards whitened over the step's tokens."""
    return _whitened(rewards.rewards_B, rewards.num_tokens_B)


def reinforce_plus_plus_baseline(rewards: Rewards) -> list[float]:
    """REINFORCE++-baseline: r - mean of the group, then whitened over the step's tokens."""
    return _whitened(dr_grpo(rewards), rewards.num_tokens_B)


def remax(rewards: Rewards) -> list[float]:
    """ReMax (arXiv 2310.10505): r minus a greedy rollout's. Raises ValueError without one."""
    if rewards.greedy_rewards_B is None:
        message = "remax needs the reward of a greedy rollout for every rollout; found none"
        raise ValueError(message)
    return [
        reward - greedy
        for reward, greedy in zip(rewards.rewards_B, rewards.greedy_rewards_B, strict=True)
    ]


def grpo_passk(rewards: Rewards) -> list[float]:
    """Pass@k (arXiv 2503.19595): the group's best gets (best - second) / (sd + 1e-6), others 0.

    Raises ValueError for a group of one.
    """
    return _per_group(
        rewards,
        lambda rewards_G: [
            value / (_sample_std(rewards_G) + VERL_EPSILON) for value in _best_margin(rewards_G)
        ],
    )


def grpo_passk_no_std(rewards: Rewards) -> list[float]:
    """Pass@k without division: the group's best gets best - second, others 0."""
    return _per_group(rewards, _best_margin)


def rejection(rewards: Rewards) -> list[float]:
    """Rejection sampling (RAFT, arXiv 2304.06767): 1 for a rollout that solved its task, else 0.

    With the loss `reinforce` this is supervised training on the policy's own right samples. Raises
    ValueError if `is_right_B` is None.
    """
    if rewards.is_right_B is None:
        message = "rejection needs to know which rollouts solved their task; found none of it"
        raise ValueError(message)
    return [float(is_right) for is_right in rewards.is_right_B]


def known_after_update(rewards: Rewards) -> list[None]:
    """None for each rollout: the update computes advantages per token with its own weights."""
    return [None] * len(rewards.rewards_B)


ADVANTAGES: Final[dict[AdvantageName, Advantage]] = {
    "mean_centered": Advantage(mean_centered),
    "reinforce": Advantage(reinforce, compares_group=False),
    "grpo": Advantage(grpo),
    "dr_grpo": Advantage(dr_grpo),
    "rloo": Advantage(rloo),
    "reinforce_plus_plus": Advantage(reinforce_plus_plus),
    "reinforce_plus_plus_baseline": Advantage(reinforce_plus_plus_baseline),
    "remax": Advantage(remax, compares_group=False),
    "opo": Advantage(opo),
    "gpg": Advantage(gpg),
    "grpo_passk": Advantage(grpo_passk, min_group_size=2),
    "grpo_passk_no_std": Advantage(grpo_passk_no_std, min_group_size=2),
    "gae": Advantage(
        known_after_update,
        compares_group=False,
        learned=LearnedWeights("value head", GaeSettings),
        reads_token_rewards=True,
    ),
    "prime": Advantage(
        known_after_update,
        min_group_size=2,
        learned=LearnedWeights("reward model", PrimeSettings),
        is_of_steps=True,
    ),
    "rejection": Advantage(rejection, compares_group=False),
}


def _per_group(
    rewards: Rewards, advantages_of: Callable[[Sequence[float]], Sequence[float]]
) -> list[float]:
    advantages_B = [0.0] * len(rewards.rewards_B)
    for places in rewards.by_group().values():
        own = advantages_of([rewards.rewards_B[at] for at in places])
        for at, value in zip(places, own, strict=True):
            advantages_B[at] = value
    return advantages_B


def _alone_as_is(
    compared: Callable[[Sequence[float]], list[float]],
) -> Callable[[Sequence[float]], list[float]]:
    return lambda rewards_G: list(rewards_G) if len(rewards_G) == 1 else compared(rewards_G)


def _best_margin(rewards_G: Sequence[float]) -> list[float]:
    if len(rewards_G) < 2:  # noqa: PLR2004  # a best and a second
        message = "grpo_passk needs groups of at least 2 scored rollouts; found one of 1"
        raise ValueError(message)
    second, best = sorted(rewards_G)[-2:]
    first_best = list(rewards_G).index(best)
    return [best - second if at == first_best else 0.0 for at in range(len(rewards_G))]


def _sample_std(values: Sequence[float]) -> float:
    """Sample standard deviation (Bessel's correction); needs at least two values."""
    mean = sum(values) / len(values)
    return sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _weighted_mean(values: Sequence[float], weights: Sequence[int]) -> float:
    """Weighted mean; the plain mean if all weights are 0, as a scripted policy has no tokens."""
    if not any(weights):
        return sum(values) / len(values)
    total = sum(weight * value for weight, value in zip(weights, values, strict=True))
    return total / sum(weights)


def _whitened(values_B: Sequence[float], num_tokens_B: Sequence[int]) -> list[float]:
    """Scale to mean 0 and variance 1 over the step's tokens, each with its rollout's value."""
    if not values_B:
        return []
    mean = _weighted_mean(values_B, num_tokens_B)
    centered_B = [value - mean for value in values_B]
    num_tokens = sum(num_tokens_B)
    if num_tokens < 2:  # noqa: PLR2004  # no variance; nothing to train on either
        return centered_B
    squares = [count * value * value for count, value in zip(num_tokens_B, centered_B, strict=True)]
    scale = 1 / sqrt(sum(squares) / (num_tokens - 1) + WHITENING_EPSILON)
    return [value * scale for value in centered_B]


def baselines(rewards: Rewards, name: BaselineName, moving: float) -> list[float]:
    """The baseline to subtract from each reward, in the order of the rollouts.

    `moving`: the average of earlier steps' rewards (`moved`).
    """
    match name:
        case "none":
            return [0.0] * len(rewards.rewards_B)
        case "moving":
            return [moving] * len(rewards.rewards_B)
        case "group":
            means = {
                group: fmean(rewards.rewards_B[at] for at in places)
                for group, places in rewards.by_group().items()
            }
            return [means[group] for group in rewards.groups_B]
        case _:
            assert_never(name)


def moved(average: float, rewards: list[float], momentum: float) -> float:
    """The moving average after a step with these rewards; unchanged if there are none.

    It starts at 0, which is the baseline of the first step.
    """
    if not rewards:
        return average
    return momentum * average + (1 - momentum) * fmean(rewards)
