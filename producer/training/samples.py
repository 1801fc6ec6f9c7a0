"""Selects the rollouts that a step trains on, and computes their advantages or their tokens'.

Axes: B rollouts, T tokens of the longest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from producer.algorithms.advantages import (
    ADVANTAGES,
    Rewards,
    baselines,
    group_advantages,
    has_signal,
    mean_centered_by_std,
)
from producer.algorithms.controls import Judged, controlled
from producer.config import RunConfig
from producer.errors import UsageError
from producer.policy.learner import LearnedAdvantages, TokenNumbers
from producer.process_rewards.cocte import TokenSpan
from producer.process_rewards.step_and_outcome import RewardWeights, ScoredSteps, token_rewards
from producer.process_rewards.user_module import load_user_module
from producer.rollouts.plan import GroupOutcome, RolloutResult
from producer.seeds import derived_seed
from producer.training.session import Session
from schemas.group import GroupDropped
from schemas.step import Sample, SamplesChosen

if TYPE_CHECKING:
    from producer.algorithms.core_functions import CoreFunction


def rewards_of_tokens(config: RunConfig, result: RolloutResult) -> list[float]:
    """R of each completion token: rm_coef x its step's score + verifier_coef x the outcome.

    Rewards from a user's reward manager take precedence.
    """
    if result.token_rewards:
        return [*result.token_rewards]
    steps = None
    if result.scored_steps:
        steps = ScoredSteps(
            tuple(step.text for step in result.scored_steps),
            tuple(TokenSpan(step.first_token, step.last_token) for step in result.scored_steps),
            tuple(step.score for step in result.scored_steps),
        )
    weights = RewardWeights(rm_coef=config.rm_coef, verifier_coef=config.verifier_coef)
    outcome = result.reward
    return token_rewards(result.num_tokens, outcome, steps, weights)


def advantages_of_tokens(
    config: RunConfig, results: Sequence[RolloutResult], groups: Sequence[int]
) -> list[TokenNumbers]:
    """Advantages of each rollout, turn and completion token, by the configured core function.

    `groups`: index of each rollout's group. Raises UsageError if the function returns invalid
    advantages.
    """
    import torch

    from producer.algorithms.core_functions import call_core_function

    rewards = [rewards_of_tokens(config, result) for result in results]
    longest = max((len(reward) for reward in rewards), default=0)
    if not longest:
        return [tuple(() for _ in result.turns) for result in results]
    rewards_BT = torch.tensor([reward + [0.0] * (longest - len(reward)) for reward in rewards])
    mask_BT = torch.tensor(
        [[1.0] * len(reward) + [0.0] * (longest - len(reward)) for reward in rewards]
    )
    try:
        found_BT, _ = call_core_function(
            find_core_function(config), rewards_BT, mask_BT, list(groups)
        )
    except ValueError as error:
        message = f"core_function: {config.core_function}: {error}"
        raise UsageError(message) from error
    return [
        by_turn(result, row[: len(own)])
        for result, row, own in zip(results, found_BT.tolist(), rewards, strict=True)
    ]


def find_core_function(config: RunConfig) -> "CoreFunction":
    """The configured function. Raises UsageError listing those that exist."""
    from producer.algorithms.core_functions import named_core_function
    from producer.process_rewards.registry import public_names

    assert config.core_function is not None  # noqa: S101  # the caller has seen it
    module: dict[str, object] = {}
    if config.core_algos is not None:
        try:
            module = public_names(load_user_module(config.core_algos))
        except ValueError as error:
            message = f"core_algos: {error}"
            raise UsageError(message) from error
    try:
        return named_core_function(config.core_function, module)
    except ValueError as error:
        message = f"core_function: {error}"
        raise UsageError(message) from error


def by_turn(result: RolloutResult, numbers: Sequence[float]) -> TokenNumbers:
    """Split the numbers of a rollout's completion tokens by turn."""
    found, at = [], 0
    for turn in result.turns:
        end = at + len(turn.tokens.completion_tokens)
        found.append(tuple(numbers[at:end]))
        at = end
    return tuple(found)


SAMPLES_PER_EVENT = 10_000
"""About 3 MiB per event; a group may be of any size."""

DropReason = Literal["zero_variance", "group_failed", "baseline", "truncated"]
"""`baseline`: a greedy rollout with which the others of its group are compared. `truncated`: a
rollout with a completion that was cut off."""
NOT_IN_UPDATE = frozenset({"group_failed", "baseline"})
"""Reasons that exclude a rollout from the update; as in tinker-cookbook, KL is also measured on
groups with equal rewards."""


@dataclass(frozen=True, slots=True)
class SelectedSample:
    """A scored rollout and how it is used."""

    result: RolloutResult
    advantage: float | None
    """None if it is not trained on and the advantage is defined only over trained rollouts. With
    gae and prime, which compute token advantages: their mean, or None before the update."""
    drop_reason: DropReason | None
    """None if it is trained on."""
    token_advantages: TokenNumbers | None = None
    """Token advantages of a core function; None: every token has `advantage`."""


def select_samples(
    config: RunConfig,
    outcomes: Sequence[GroupOutcome],
    *,
    moving_baseline: float = 0.0,
    control_seed: int = 0,
) -> list[list[SelectedSample]]:
    """The use of every scored rollout, per group. Advantages are computed over all kept groups.

    `moving_baseline`: from the previous steps. `control_seed`: the step's seed for the control's
    permutation.
    """
    seen = _controlled(config, outcomes, control_seed)
    groups = _select(config, seen, moving_baseline)
    return [
        [_used(config, item, result) for item, result in zip(group, _scored(own), strict=True)]
        for group, own in zip(groups, outcomes, strict=True)
    ]


def control_seed(config: RunConfig, *, generation: int, step: int) -> int:
    """Seed of the permutation of a step's rewards."""
    return derived_seed(config.seed, "control", generation, step)


def _used(config: RunConfig, item: SelectedSample, result: RolloutResult) -> SelectedSample:
    """The sample for the rollout's original scores, dropped if a completion was cut off."""
    is_cut = any(
        turn.completion.tokens is not None and turn.completion.tokens.stop_reason == "length"
        for turn in result.turns
    )
    if config.mask_truncated and is_cut and item.drop_reason is None:
        return replace(item, result=result, drop_reason="truncated")
    return replace(item, result=result)


def _controlled(
    config: RunConfig, outcomes: Sequence[GroupOutcome], seed: int
) -> Sequence[GroupOutcome]:
    """The outcomes under the control; groups that are left out keep theirs."""
    if config.control == "none":
        return outcomes
    trained = [
        num
        for num, outcome in enumerate(outcomes)
        if drop_reason(config, outcome) not in NOT_IN_UPDATE
    ]
    true_B = [
        Judged(result.reward, result.success) for num in trained for result in outcomes[num].results
    ]
    judged = iter(controlled(config.control, true_B, seed=seed))
    seen = list(outcomes)
    for num in trained:
        results = [
            result.with_verdict(one.reward, success=one.is_right)
            for result, one in zip(outcomes[num].results, judged, strict=False)
        ]
        seen[num] = replace(outcomes[num], results=tuple(results))
    return seen


def _scored(outcome: GroupOutcome) -> list[RolloutResult]:
    """Scored rollouts in the order of a group's samples."""
    return [*outcome.results, *([] if outcome.baseline is None else [outcome.baseline])]


def _select(
    config: RunConfig, outcomes: Sequence[GroupOutcome], moving_baseline: float
) -> list[list[SelectedSample]]:
    reasons = [drop_reason(config, outcome) for outcome in outcomes]
    kept = [
        (num, result)
        for num, (outcome, reason) in enumerate(zip(outcomes, reasons, strict=True))
        for result in outcome.results
        if reason is None
    ]
    used = iter(_with_advantages(config, outcomes, kept, moving_baseline))
    selected = [
        [next(used) for _ in outcome.results]
        if reason is None
        else _dropped(config, outcome.results, reason)
        for outcome, reason in zip(outcomes, reasons, strict=True)
    ]
    for own, outcome in zip(selected, outcomes, strict=True):
        if outcome.baseline is not None:
            own.append(SelectedSample(outcome.baseline, None, "baseline"))
    return selected


def _with_advantages(
    config: RunConfig,
    outcomes: Sequence[GroupOutcome],
    kept: Sequence[tuple[int, RolloutResult]],
    moving_baseline: float,
) -> list[SelectedSample]:
    """Samples of the kept rollouts, each given with the index of its group in `outcomes`.

    With a core function, the mean of a rollout's token advantages is recorded.
    """
    groups_B = [num for num, _ in kept]
    results_B = [result for _, result in kept]
    if config.core_function is not None:
        return [
            SelectedSample(result, _mean_of(tokens), None, tokens)
            for result, tokens in zip(
                results_B, advantages_of_tokens(config, results_B, groups_B), strict=True
            )
        ]
    greedy = {num: one.baseline.reward for num, one in enumerate(outcomes) if one.baseline}
    rewards = Rewards(
        rewards_B=[result.reward for result in results_B],
        groups_B=groups_B,
        num_tokens_B=[result.num_tokens for result in results_B],
        greedy_rewards_B=[greedy[num] for num in groups_B] if config.advantage == "remax" else None,
        is_right_B=[result.success for result in results_B],
    )
    taken_off = baselines(rewards, config.baseline, moving_baseline)
    return [
        SelectedSample(result, None if advantage is None else advantage - own, None)
        for result, advantage, own in zip(
            results_B, _advantages(config, rewards), taken_off, strict=True
        )
    ]


def _mean_of(tokens: TokenNumbers) -> float:
    every = [value for turn in tokens for value in turn]
    return fmean(every) if every else 0.0


def with_token_means(
    groups: Sequence[Sequence[SelectedSample]],
    measured: Sequence[SelectedSample],
    learned: LearnedAdvantages | None,
) -> list[list[SelectedSample]]:
    """The samples with the means of their token advantages; `measured` are the update's."""
    if learned is None:
        return [list(group) for group in groups]
    means = {one.result.plan.id: mean for one, mean in zip(measured, learned.means, strict=True)}
    return [
        [replace(item, advantage=means.get(item.result.plan.id)) for item in group]
        for group in groups
    ]


def measured_samples(samples: Sequence[SelectedSample]) -> list[SelectedSample]:
    """Samples in the update; as in tinker-cookbook, KL also uses groups with equal rewards."""
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
    """Record each group's samples and those dropped, unless an earlier process did.

    `version`: the policy's version before the update.
    """
    sampled = session.history.sampled_rollouts(step_id)
    dropped = session.history.dropped_groups()
    for outcome, group in zip(outcomes, groups, strict=True):
        missing = [item for item in group if item.result.plan.id not in sampled]
        for start in range(0, len(missing), SAMPLES_PER_EVENT):
            part = missing[start : start + SAMPLES_PER_EVENT]
            session.stream.emit(_samples_chosen(version, step_id, part))
        reason = group[0].drop_reason if group else None
        if reason == "zero_variance" and outcome.plan.id not in dropped:
            session.stream.emit(GroupDropped(group_id=outcome.plan.id, reason=reason))


def drop_reason(config: RunConfig, outcome: GroupOutcome) -> DropReason | None:
    """Why a group is not trained on; None if it is."""
    if outcome.is_failed:
        return "group_failed"
    every = _scored(outcome)
    is_constant = not has_signal([compared_reward(config, item) for item in every])
    return "zero_variance" if is_constant and config.remove_constant_reward_groups else None


def compared_reward(config: RunConfig, result: RolloutResult) -> float:
    """The reward compared within a group; with scored steps, the mean of its token rewards."""
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
    """The group's samples as dropped; a mean-centred advantage exists within any group."""
    advantages: Sequence[float | None] = [None] * len(results)
    if config.advantage == "mean_centered" and config.core_function is None:
        advantages = group_advantages(
            [result.reward for result in results], divide_by_std=config.advantage_by_std
        )
    return [
        SelectedSample(result, advantage, reason)
        for result, advantage in zip(results, advantages, strict=True)
    ]


def _samples_chosen(version: int, step_id: UUID, group: Sequence[SelectedSample]) -> SamplesChosen:
    """The event that records the group's samples; `version` is that before the update."""
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
