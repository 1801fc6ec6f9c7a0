"""Bounds for the difference of two float32 computations of the same number.

Derived from dtype, magnitude and number of terms: a bound measured on one processor fails on the
next, whose matrix products add up in another order.
"""

import math
from collections.abc import Iterable

import torch
from torch import nn

EPS = torch.finfo(torch.float32).eps
CONFIDENCE = 4.0
"""Multiple of the standard deviation of accumulated rounding."""


def rounding_of_sum(terms: Iterable[float]) -> float:
    """Bound for a sum of float32 terms in any order.

    N eps sum |term| (Higham, Accuracy and Stability, 2002, eq. 4.4).
    """
    magnitudes = [abs(term) for term in terms]
    return len(magnitudes) * EPS * sum(magnitudes)


def rounding_of_forward(network: nn.Module, magnitude: float) -> float:
    """Bound for the difference of an output of this size between two float32 forward passes.

    Each pass errs by about sqrt(n) eps/2 of the output's size, n being the terms added up on the
    way (the inputs of every linear map; Higham and Mary, 2019). Two passes, each within
    `CONFIDENCE` times that.
    """
    terms = sum(module.in_features for module in network.modules() if isinstance(module, nn.Linear))
    return 2 * CONFIDENCE * math.sqrt(terms) * EPS / 2 * magnitude
