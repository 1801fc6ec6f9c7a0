"""Figures of a classifier on held-out examples. Imports no torch."""

from collections.abc import Sequence


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
