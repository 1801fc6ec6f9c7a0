"""Which rollouts a step trains on, with which advantages: algorithm by name, then the events."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal
from uuid import UUID

from producer.algorithms.advantages import (
    ADVANTAGES,
    Rewards,
    group_advantages,
    has_signal,
    mean_centered_by_std,
)
from producer.algorithms.baselines import baselines
from producer.config import RunConfig
from producer.policy.learner import LearnedAdvantages, TokenNumbers
from producer.rollouts.plan import GroupOutcome, RolloutResult
from producer.training.session import Session
from producer.training.stale import max_staleness
from producer.training.token_credit import advantages_of_tokens, rewards_of_tokens
from schemas.group import GroupDropped
from schemas.step import Sample, SamplesChosen

SAMPLES_PER_EVENT = 10_000
"""About 3 MiB; a group may be of any size."""

DropReason = Literal["zero_variance", "group_failed", "stale", "baseline"]
"""`baseline`: a greedy rollout that its group's others are compared with."""
NOT_IN_UPDATE = frozenset({"group_failed", "stale", "baseline"})
"""Of what was dropped; as in tinker-cookbook, KL is measured on groups of one reward too."""


@dataclass(frozen=True, slots=True)
class SelectedSample:
    """One scored rollout and its use."""

    result: RolloutResult
    advantage: float | None
    """None: it is not trained on, and the advantage is defined over what is. With gae and
    prime, whose advantages are tokens', their mean, and None until the update has computed them."""
    drop_reason: DropReason | None
    """None: it is trained on."""
    token_advantages: TokenNumbers | None = None
    """Of a core function; None: `advantage` is every token's."""


def select_samples(
    config: RunConfig,
    outcomes: Sequence[GroupOutcome],
    *,
    version: int = 0,
    moving_baseline: float = 0.0,
) -> list[list[SelectedSample]]:
    """Per group, the use of every scored rollout. Advantages are of the kept groups together.

    `version`: of the policy that will be updated. `moving_baseline`: of the steps before.
    """
    reasons = [_drop_reason(config, outcome, version) for outcome in outcomes]
    kept = [
        (num, result)
        for num, (outcome, reason) in enumerate(zip(outcomes, reasons, strict=True))
        for result in outcome.results
        if reason is None
    ]
    if config.core_function is not None:
        return _by_core_function(config, outcomes, reasons, kept)
    rewards = Rewards(
        rewards_B=[result.reward for _, result in kept],
        groups_B=[num for num, _ in kept],
        num_tokens_B=[result.num_tokens for _, result in kept],
        greedy_rewards_B=_greedy_rewards(outcomes, [num for num, _ in kept])
        if config.advantage == "remax"
        else None,
    )
    taken_off = baselines(rewards, config.baseline, moving_baseline)
    advantages = iter(
        None if advantage is None else advantage - own
        for advantage, own in zip(_advantages(config, rewards), taken_off, strict=True)
    )
    selected = [
        [SelectedSample(result, next(advantages), None) for result in outcome.results]
        if reason is None
        else _dropped(config, outcome.results, reason)
        for outcome, reason in zip(outcomes, reasons, strict=True)
    ]
    return [
        [*own, *_baseline_sample(outcome)] for own, outcome in zip(selected, outcomes, strict=True)
    ]


def _greedy_rewards(outcomes: Sequence[GroupOutcome], groups_B: Sequence[int]) -> list[float]:
    """Of each rollout's group, which has one, or it had failed."""
    found = {num: one.baseline.reward for num, one in enumerate(outcomes) if one.baseline}
    return [found[num] for num in groups_B]


def _baseline_sample(outcome: GroupOutcome) -> list[SelectedSample]:
    return [] if outcome.baseline is None else [SelectedSample(outcome.baseline, None, "baseline")]


def _by_core_function(
    config: RunConfig,
    outcomes: Sequence[GroupOutcome],
    reasons: Sequence[DropReason | None],
    kept: Sequence[tuple[int, RolloutResult]],
) -> list[list[SelectedSample]]:
    """Advantages of tokens; what is recorded is their mean over the rollout."""
    found = iter(
        advantages_of_tokens(config, [result for _, result in kept], [num for num, _ in kept])
    )

    def selected(result: RolloutResult) -> SelectedSample:
        tokens = next(found)
        every = [value for turn in tokens for value in turn]
        return SelectedSample(result, fmean(every) if every else 0.0, None, tokens)

    return [
        [selected(result) for result in outcome.results]
        if reason is None
        else [SelectedSample(result, None, reason) for result in outcome.results]
        for outcome, reason in zip(outcomes, reasons, strict=True)
    ]


def with_token_means(
    groups: Sequence[Sequence[SelectedSample]],
    measured: Sequence[SelectedSample],
    learned: LearnedAdvantages | None,
) -> list[list[SelectedSample]]:
    """The samples with the means of their tokens' advantages; `measured`: those of the update."""
    if learned is None:
        return [list(group) for group in groups]
    means = {one.result.plan.id: mean for one, mean in zip(measured, learned.means, strict=True)}
    return [
        [replace(item, advantage=means.get(item.result.plan.id)) for item in group]
        for group in groups
    ]


def measured_samples(samples: Sequence[SelectedSample]) -> list[SelectedSample]:
    """Those that the update sees: as in tinker-cookbook, KL is of groups of one reward too."""
    return [
        sample
        for sample in samples
        if sample.drop_reason not in NOT_IN_UPDATE and sample.result.turns
    ]


def emit_samples(
    session: Session,
    step_id: UUID,
    outcomes: Sequence[GroupOutcome],
    groups: Sequence[Sequence[SelectedSample]],
    *,
    version: int,
) -> None:
    """Record every group's samples, and which are dropped, unless an earlier process did.

    `version`: of the policy before the update.
    """
    sampled = session.history.sampled_rollouts(session.own_training_id, step_id)
    dropped = session.history.dropped_groups(session.own_training_id)
    for outcome, group in zip(outcomes, groups, strict=True):
        missing = [item for item in group if item.result.plan.id not in sampled]
        for start in range(0, len(missing), SAMPLES_PER_EVENT):
            part = missing[start : start + SAMPLES_PER_EVENT]
            session.stream.emit(_samples_chosen(version, step_id, part))
        reason = group[0].drop_reason if group else None
        if reason in {"zero_variance", "stale"} and outcome.plan.id not in dropped:
            session.stream.emit(GroupDropped(group_id=outcome.plan.id, reason=reason))


def _drop_reason(config: RunConfig, outcome: GroupOutcome, version: int) -> DropReason | None:
    if outcome.is_failed:
        return "group_failed"
    every = [*outcome.results, *([] if outcome.baseline is None else [outcome.baseline])]
    if any(version - item.policy_version > max_staleness(config) for item in every):
        return "stale"
    is_constant = not has_signal([compared_reward(config, item) for item in every])
    return "zero_variance" if is_constant and config.remove_constant_reward_groups else None


def compared_reward(config: RunConfig, result: RolloutResult) -> float:
    """What tells a rollout from others of its group: with scored steps the mean of its tokens'."""
    if not result.scored_steps and not result.token_rewards:
        return result.reward
    rewards = rewards_of_tokens(config, result)
    return fmean(rewards) if rewards else result.reward


def _advantages(config: RunConfig, rewards: Rewards) -> Sequence[float | None]:
    if config.advantage_by_std:
        return mean_centered_by_std(rewards)
    return ADVANTAGES[config.advantage].compute(rewards)


def _dropped(
    config: RunConfig, results: Sequence[RolloutResult], reason: DropReason
) -> list[SelectedSample]:
    """A mean-centred advantage is defined within any group, trained on or not."""
    advantages: Sequence[float | None] = [None] * len(results)
    if config.advantage == "mean_centered":
        advantages = group_advantages(
            [result.reward for result in results], divide_by_std=config.advantage_by_std
        )
    return [
        SelectedSample(result, advantage, reason)
        for result, advantage in zip(results, advantages, strict=True)
    ]


def _samples_chosen(version: int, step_id: UUID, group: Sequence[SelectedSample]) -> SamplesChosen:
    return SamplesChosen(
        step_id=step_id,
        samples=tuple(
            Sample(
                rollout_id=item.result.plan.id,
                group_id=item.result.plan.group_id,
                advantage=item.advantage,
                reward=item.result.reward,
                policy_version=item.result.policy_version,
                staleness=max(0, version - item.result.policy_version),
                num_tokens=item.result.num_tokens,
                used=item.drop_reason is None,
                drop_reason=item.drop_reason,
            )
            for item in group
        ),
    )
