"""Metrics of a step's batch (completions, groups, advantages) and of its update's ratios.

A metric is None if there is nothing to measure: a scripted policy has no tokens.
"""

import statistics
from collections.abc import Sequence
from itertools import pairwise

from pydantic import JsonValue

from producer.algorithms.advantages import has_signal
from producer.config import RunConfig
from producer.policy.learner import UpdateResult
from producer.rollouts.plan import GroupOutcome
from producer.training.samples import SelectedSample, compared_reward


def completion_metrics(outcomes: Sequence[GroupOutcome]) -> dict[str, JsonValue]:
    """Quantiles of completion lengths in tokens (one per turn), and the share cut off."""
    tokens = [
        turn.completion.tokens
        for outcome in outcomes
        for result in outcome.results
        for turn in result.turns
        if turn.completion.tokens is not None
    ]
    if not tokens:
        return {}
    lengths = sorted(len(item.completion_tokens) for item in tokens)
    num_cut = sum(item.stop_reason == "length" for item in tokens)
    return {
        **{f"env/all/ac_tokens/p{percent}": quantile(lengths, percent) for percent in (10, 50, 90)},
        "env/all/ac_tokens/max": lengths[-1],
        "env/all/ac_truncated": num_cut / len(lengths),
    }


def num_retokenised(outcomes: Sequence[GroupOutcome]) -> int:
    """Number of turns whose prompt does not extend the last turn's tokens.

    A server tokenised the earlier turns differently. The content is the same, and the prompt is
    recorded whole.
    """
    turns = [
        [turn.completion.tokens for turn in result.turns]
        for outcome in outcomes
        for result in outcome.results
    ]
    return sum(
        before is not None
        and tokens is not None
        and tokens.prompt_extends is None
        # Fewer screenshots: old turns were left out, which begins another prompt anyway.
        and tokens.num_prompt_images in {0, before.num_prompt_images + 1}
        for own in turns
        for before, tokens in pairwise(own)
    )


def quantile(ascending: Sequence[int], percent: int) -> int:
    """The nearest-rank percentile: the smallest value that `percent` % do not exceed."""
    return ascending[max(0, -(-len(ascending) * percent // 100) - 1)]


def signal_metrics(
    config: RunConfig, outcomes: Sequence[GroupOutcome], samples: Sequence[SelectedSample]
) -> dict[str, JsonValue]:
    """Share of groups whose true rewards are all equal, and spread of the trained advantages."""
    whole = [outcome for outcome in outcomes if not outcome.is_failed]
    constant = sum(
        not has_signal([compared_reward(config, result) for result in outcome.results])
        for outcome in whole
    )
    advantages = [
        sample.advantage
        for sample in samples
        if sample.drop_reason is None and sample.advantage is not None
    ]
    spread: dict[str, JsonValue] = {}
    if advantages:
        spread = {
            "optim/advantage/std": statistics.pstdev(advantages),
            "optim/advantage/min": min(advantages),
            "optim/advantage/max": max(advantages),
        }
    return {"env/all/by_group/frac_without_signal": constant / len(outcomes), **spread}


def ratio_metrics(update: UpdateResult) -> dict[str, JsonValue]:
    """The update's probability ratios (current to sampled) and its gradient after clipping."""
    gap = update.sampler_gap
    measured = {
        "optim/clip_fraction": update.clip_fraction,
        "optim/importance_capped_share": update.capped_share,
        "optim/ratio_max": update.largest_ratio,
        "optim/effective_sample_share": None if gap is None else gap.effective_share,
        "optim/gradient_norm_clipped": update.clipped_gradient_norm,
    }
    return {name: value for name, value in measured.items() if value is not None}
