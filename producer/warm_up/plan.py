"""What the process that records a warm-up knows of it beforehand. Imports no torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.training import Recipe

OnProgress = Callable[[str, int, int, float | None], None]
"""Gets (policy, optimiser steps done, in all, loss); loss is None while demonstrations are made."""
OnWait = Callable[[str, int, int, float | None], None]
"""The same of another process that makes the policy, of which it gets the name."""
OnStep = Callable[[int, float | None], None]
"""Gets (optimiser steps done, loss); loss is None while demonstrations are made."""


@dataclass(frozen=True, slots=True)
class WarmUpStep:
    """One optimiser step."""

    stage: str
    """What is trained: alignment, grounding, imitation."""
    batch_size: int
    """Items of the batch."""
    learning_rate: float
    """Of AdamW."""


@dataclass(frozen=True, slots=True)
class WarmUpPlan:
    """Of one policy."""

    steps: tuple[WarmUpStep, ...]
    """Every optimiser step, in order."""
    settings: Mapping[str, JsonValue]
    """The recipe, as the training's configuration records it."""
    recipe: Callable[[str], Recipe]
    """The columns of the training, of the policy with this name."""
