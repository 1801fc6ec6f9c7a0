"""Clusters prompts by their prefix, so that a shuffled batch keeps them adjacent. Imports no torch.

Questions about one database share its schema; rollouts of a group share their whole prompt.
Adjacent prompts mostly fall into one optimiser step, where `packed_rows` can share their prefix.
"""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Tokens: TypeAlias = Sequence[int] | NDArray[np.int64]

MIN_SHARED: Final = 0.75
"""Two prompts are clustered if their common prefix is at least this share of the longer one; a
system prompt common to all questions is not enough."""


def shuffle_clusters(clusters: Sequence[Sequence[int]], rng: random.Random) -> list[int]:
    """All indices: the clusters in random order, the order within each unchanged."""
    return [index for cluster in rng.sample(clusters, len(clusters)) for index in cluster]


def cluster_by_prefix(prompts: Sequence[Tokens]) -> list[list[int]]:
    """Clusters of indices: sorts prompts by tokens and joins neighbours that share enough."""
    order = sorted(range(len(prompts)), key=lambda index: list(prompts[index]))
    clusters = [order[:1]] if order else []
    for before, index in pairwise(order):
        longer = max(len(prompts[before]), len(prompts[index]))
        if common_length(prompts[before], prompts[index]) >= MIN_SHARED * longer:
            clusters[-1].append(index)
        else:
            clusters.append([index])
    return clusters


def common_length(first: Tokens, second: Tokens) -> int:
    """Length of the common prefix."""
    length = min(len(first), len(second))
    differs = np.asarray(first[:length]) != np.asarray(second[:length])
    return int(differs.argmax()) if differs.any() else length
