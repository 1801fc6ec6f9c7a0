"""Bounds of the probability ratio new / old in the losses that clip it; without torch."""

from dataclasses import dataclass
from typing import Final

from producer.algorithms.names import CLIPPED
from producer.algorithms.settings import LossSettings

MAX_LOG_RATIO: Final = 20.0
"""Log ratios are cut here before the exponential by losses that clip and by k3, as in verl."""


@dataclass(frozen=True, slots=True)
class Clip:
    """Bounds of the probability ratio new / old."""

    low: float = 0.2
    """The lower bound is 1 - low."""
    high: float = 0.2
    """The upper bound is 1 + high."""
    dual: float | None = None
    """ppo: upper bound of the ratio where the advantage is negative; None: none."""


def clip_of(settings: LossSettings) -> Clip:
    """The bounds as set; one that is not is the loss's own."""
    low, high = CLIPPED.get(settings.loss_fn, (0.0, 0.0))
    return Clip(
        low if settings.clip_ratio_low is None else settings.clip_ratio_low,
        high if settings.clip_ratio_high is None else settings.clip_ratio_high,
        settings.dual_clip,
    )
