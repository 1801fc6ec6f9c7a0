"""Bounds of the probability ratio new / old in the losses that clip it; without torch."""

from dataclasses import dataclass
from typing import Final

from producer.algorithms.names import CLIPPED
from producer.algorithms.settings import LossSettings

MAX_LOG_RATIO: Final = 20.0
"""Losses that clip, and k3, clamp log ratios to this before the exponential, as in verl."""


@dataclass(frozen=True, slots=True)
class Clip:
    """Bounds of the probability ratio new / old."""

    low: float = 0.2
    """The lower bound is 1 - low."""
    high: float = 0.2
    """The upper bound is 1 + high."""
    dual: float | None = None
    """ppo only: upper bound of the ratio for negative advantages; None for no bound."""


def clip_of(settings: LossSettings) -> Clip:
    """The configured bounds; a bound that is not set takes the loss's default."""
    low, high = CLIPPED.get(settings.loss_fn, (0.0, 0.0))
    return Clip(
        low if settings.clip_ratio_low is None else settings.clip_ratio_low,
        high if settings.clip_ratio_high is None else settings.clip_ratio_high,
        settings.dual_clip,
    )
