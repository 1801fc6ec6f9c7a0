"""Learning rates over a training's optimiser steps. Imports no torch."""

import math
from typing import Literal, assert_never

ScheduleName = Literal["constant", "linear", "cosine"]


def learning_rate_factor(
    step: int,
    num_steps: int,
    *,
    warmup_steps: int,
    final_factor: float,
    schedule: ScheduleName = "cosine",
) -> float:
    """Factor of the peak rate at optimiser step `step` (from 0); in (0, 1].

    The product of a linear rise over `warmup_steps` and a decay from 1 to `final_factor` at
    `num_steps`.
    """
    done = step / num_steps
    match schedule:
        case "constant":
            fall = 1.0
        case "linear":
            fall = 1 - done
        case "cosine":
            fall = 0.5 * (1 + math.cos(math.pi * done))
        case _:
            assert_never(schedule)
    rise = min(1.0, (step + 1) / warmup_steps) if warmup_steps else 1.0
    return rise * (fall * (1 - final_factor) + final_factor)
