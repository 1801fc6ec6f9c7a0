"""Figures on held-out items, for each objective. Axes: M targets, V vocabulary."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from producer.policy.torch_policy.cpu_parallel import parallel_map
from producer.policy.torch_policy.logprobs import length_batches
from producer.supervised.objective import CrossEntropy, Example, LoadedNetwork, target_logits
from producer.supervised.pairwise_reward import BradleyTerry, TokenPair
from producer.supervised.precision import autocast
from producer.supervised.process_reward import MarkedSteps, StepCrossEntropy


def area_under_curve(scores: Sequence[float], is_positive: Sequence[bool]) -> float | None:
    """Probability that a positive scores above a negative, ties as one half (the ROC's area).

    None without a positive or without a negative.
    """
    num_positive = sum(is_positive)
    num_negative = len(is_positive) - num_positive
    if not num_positive or not num_negative:
        return None
    ordered = sorted(zip(scores, is_positive, strict=True))
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


class Outcome(NamedTuple):
    """One target of a held-out item."""

    loss: float
    is_right: bool
    score: float = 0.0
    """Probability that a step is right; 0 in other objectives."""
    is_positive: bool = False


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over the targets: tokens, steps or pairs."""

    loss: float
    """Nats."""
    accuracy: float
    """Tokens predicted, steps or pairs judged right."""
    auc: float | None
    """Of steps; None: another objective, or all labels are the same."""
    num_targets: int


def evaluate(
    network: LoadedNetwork,
    objective: CrossEntropy | StepCrossEntropy | BradleyTerry,
    items: Sequence[Any],
    max_tokens: int,
    *,
    is_bfloat16: bool = False,
) -> Figures:
    """Figures on the items, which must not be empty; nothing changes.

    `is_bfloat16`: products are rounded as in training; the same bits on any number of cores.
    """
    measure: Callable[[Sequence[Any]], list[Outcome]]
    match objective:
        case CrossEntropy():
            measure = partial(_tokens, network)
        case StepCrossEntropy():
            measure = partial(_steps, network, objective)
        case BradleyTerry():
            measure = partial(_pairs, network, objective)

    def outcomes_of(part: Sequence[Any]) -> list[Outcome]:
        # Per thread, as torch has it: set around all passes it would not reach parallel ones.
        with autocast(network.device, is_bfloat16=is_bfloat16):
            return measure(part)

    lengths = [objective.num_tokens(item) for item in items]
    parts = [[items[at] for at in part] for part in length_batches(lengths, max_tokens)]
    with torch.no_grad():
        outcomes = [
            item for found in parallel_map(outcomes_of, parts, network.device) for item in found
        ]
    num = len(outcomes)
    is_scored = isinstance(objective, StepCrossEntropy)
    scores, positive = (
        [outcome.score for outcome in outcomes],
        [outcome.is_positive for outcome in outcomes],
    )
    return Figures(
        loss=sum(outcome.loss for outcome in outcomes) / num,
        accuracy=sum(outcome.is_right for outcome in outcomes) / num,
        auc=area_under_curve(scores, positive) if is_scored else None,
        num_targets=num,
    )


def _tokens(network: LoadedNetwork, items: Sequence[Example]) -> list[Outcome]:
    logits_MV, targets_M = target_logits(network, items)
    losses_M = functional.cross_entropy(logits_MV, targets_M, reduction="none")
    right_M = logits_MV.argmax(dim=-1) == targets_M
    return [
        Outcome(loss, right)
        for loss, right in zip(losses_M.tolist(), right_M.tolist(), strict=True)
    ]


def _steps(
    network: LoadedNetwork, objective: StepCrossEntropy, items: Sequence[MarkedSteps]
) -> list[Outcome]:
    logprobs = objective.logprobs(network, items).tolist()
    labels = [label for item in items for label in item.labels]
    return [
        Outcome(
            loss=-(label * right + (1 - label) * wrong),
            is_right=(right > wrong) == (label > 0.5),  # noqa: PLR2004  # more right than not
            score=right,
            is_positive=label > 0.5,  # noqa: PLR2004
        )
        for (right, wrong), label in zip(logprobs, labels, strict=True)
    ]


def _pairs(
    network: LoadedNetwork, objective: BradleyTerry, items: Sequence[TokenPair]
) -> list[Outcome]:
    margins_B = objective.margins(network, items)
    losses = (-functional.logsigmoid(margins_B)).tolist()
    return [
        Outcome(loss, margin > 0) for loss, margin in zip(losses, margins_B.tolist(), strict=True)
    ]
