"""Metrics on held-out items: loss, accuracy, and the AUC if targets have two classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from producer.policy.torch_policy.cpu_parallel import parallel_map
from producer.supervised.objective import (
    Item,
    Item_contra,
    LoadedNetwork,
    Objective,
    Outcome,
    autocast,
)


class Measured(Objective[Item_contra], Protocol[Item_contra]):
    """An objective that also reports the outcome of each target."""

    def outcomes(self, network: LoadedNetwork, items: Sequence[Item_contra]) -> list[Outcome]:
        """Outcomes of the items' targets, in order. Called without gradients."""
        ...


def area_under_curve(scored: Sequence[tuple[float, bool]]) -> float | None:
    """Probability that a positive scores above a negative, ties counting half (area under the ROC).

    `scored`: pairs of a score and whether it is a positive's. None if either class is missing.
    """
    num_positive = sum(is_positive for _, is_positive in scored)
    num_negative = len(scored) - num_positive
    if not num_positive or not num_negative:
        return None
    ordered = sorted(scored)
    rank_sum, start = 0.0, 0
    while start < len(ordered):
        end = start
        while end < len(ordered) and ordered[end][0] == ordered[start][0]:
            end += 1
        mean_rank = (start + 1 + end) / 2
        rank_sum += mean_rank * sum(positive for _, positive in ordered[start:end])
        start = end
    above = rank_sum - num_positive * (num_positive + 1) / 2
    return above / (num_positive * num_negative)


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over the targets, which are tokens, steps or pairs."""

    loss: float
    """Mean loss, nats."""
    accuracy: float
    """Share of tokens predicted, or of steps or pairs judged, correctly."""
    auc: float | None
    """AUC over steps; None for another objective, or if all labels are equal."""
    num_targets: int


def evaluate(
    network: LoadedNetwork,
    objective: Measured[Item],
    items: Sequence[Item],
    max_tokens: int,
    *,
    is_bfloat16: bool = False,
) -> Figures:
    """Evaluate on the items, which must not be empty; changes nothing.

    `is_bfloat16`: products are rounded as in training. Same bits on any number of cores.
    """

    def outcomes_of(part: Sequence[Item]) -> list[Outcome]:
        # autocast is per thread: set around all passes it would not reach parallel ones.
        with autocast(network, is_bfloat16=is_bfloat16):
            return objective.outcomes(network, part)

    parts = [
        [items[at] for at in part] for part in objective.micro_batches(network, items, max_tokens)
    ]
    with torch.no_grad():
        outcomes = [
            item for found in parallel_map(outcomes_of, parts, network.device) for item in found
        ]
    num = len(outcomes)
    classed = [
        (outcome.score, outcome.is_positive)
        for outcome in outcomes
        if outcome.is_positive is not None
    ]
    return Figures(
        loss=sum(outcome.loss for outcome in outcomes) / num,
        accuracy=sum(outcome.is_right for outcome in outcomes) / num,
        auc=area_under_curve(classed),
        num_targets=num,
    )
