"""Prompts that begin alike, kept together where a batch is divided at random. Imports no torch.

Questions about one database share its schema, rollouts of a group their whole prompt. What the
sequences of one optimiser step begin with is computed once for all of them.
"""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Tokens: TypeAlias = Sequence[int] | NDArray[np.int64]

SHARED: Final = 0.75
"""Share of the longer of two prompts that both begin with, from which on they are alike. A system
prompt that all questions share is no reason to keep them together."""


def shuffle_clusters(clusters: Sequence[Sequence[int]], rng: random.Random) -> list[int]:
    """Their indices: the clusters in random order, each in its own."""
    return [index for cluster in rng.sample(clusters, len(clusters)) for index in cluster]


def cluster_by_prefix(prompts: Sequence[Tokens]) -> list[list[int]]:
    """Indices of the prompts: neighbours in the order of their tokens that begin alike."""
    order = sorted(range(len(prompts)), key=lambda index: list(prompts[index]))
    clusters = [order[:1]] if order else []
    for before, index in pairwise(order):
        longer = max(len(prompts[before]), len(prompts[index]))
        if common_length(prompts[before], prompts[index]) >= SHARED * longer:
            clusters[-1].append(index)
        else:
            clusters.append([index])
    return clusters


def common_length(first: Tokens, second: Tokens) -> int:
    """Tokens at their beginnings that are equal."""
    length = min(len(first), len(second))
    differs = np.asarray(first[:length]) != np.asarray(second[:length])
    return int(differs.argmax()) if differs.any() else length
