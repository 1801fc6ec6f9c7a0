"""The learning rate of both stages: a short rise, then half a cosine down to a twentieth."""

import math

RISE_STEPS = 20
FLOOR = 0.05


def share_of_rate(step: int, num_steps: int) -> float:
    """Factor of the learning rate at optimiser step `step` (from 0)."""
    cosine = 0.5 * (1 + math.cos(math.pi * step / num_steps))
    return min(1.0, (step + 1) / RISE_STEPS) * (cosine * (1 - FLOOR) + FLOOR)
