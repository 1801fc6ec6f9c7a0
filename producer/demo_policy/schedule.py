"""The warm-up's optimiser steps: which stage each belongs to, its batch and its learning rate.

Imports no torch: the process that records a warm-up reads it too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from producer.demo_policy.recipe import WarmUpRecipe
from producer.supervised import learning_rate

WARMUP_STEPS: Final = 20
FINAL_FACTOR: Final = 0.05
SCREENS_PER_BATCH: Final = 64
"""Of alignment."""


@dataclass(frozen=True, slots=True)
class WarmUpStep:
    """One optimiser step."""

    stage: str
    """alignment, grounding (sequences of it alone) or imitation."""
    batch_size: int
    """Screens in alignment, else sequences."""
    learning_rate: float
    """Of AdamW."""


def learning_rate_factor(step: int, num_steps: int) -> float:
    """Factor at optimiser step `step` (from 0): linear warm-up, then cosine to `FINAL_FACTOR`."""
    return learning_rate.learning_rate_factor(
        step, num_steps, warmup_steps=WARMUP_STEPS, final_factor=FINAL_FACTOR
    )


def warm_up_steps(recipe: WarmUpRecipe) -> Iterator[WarmUpStep]:
    """Every step of the warm-up, in order."""
    for step in range(recipe.alignment_steps):
        factor = learning_rate_factor(step, recipe.alignment_steps)
        rate = recipe.alignment_learning_rate * factor
        yield WarmUpStep("alignment", SCREENS_PER_BATCH, rate)
    for phase in recipe.imitation_phases:
        stage = "imitation" if phase.episodes_per_batch else "grounding"
        size = phase.episodes_per_batch + phase.grounding_per_batch
        for step in range(phase.num_steps):
            rate = recipe.imitation_learning_rate * learning_rate_factor(step, phase.num_steps)
            yield WarmUpStep(stage, size, rate)
