"""Which items an optimiser step trains on: seeded epochs.

A function of seed and step alone, so that a training which goes on needs no generator's state.
Imports no torch.
"""

import math
import random

from producer.seeds import derived_seed


def steps_per_epoch(num_items: int, batch_size: int) -> int:
    """Optimiser steps that see every item once; the last batch may be smaller."""
    return math.ceil(num_items / batch_size)


def batch_of_step(step: int, num_items: int, batch_size: int, seed: int) -> list[int]:
    """Indices of the items of optimiser step `step`, from 0; each epoch has an order of its own."""
    epoch, at = divmod(step, steps_per_epoch(num_items, batch_size))
    rng = random.Random(derived_seed(seed, "epoch", epoch))  # noqa: S311  # order, not secrets
    order = rng.sample(range(num_items), num_items)
    return order[at * batch_size : (at + 1) * batch_size]
