"""The warm-up's optimiser steps: which stage each belongs to, its batch and its learning rate.

Imports no torch: the process that records a warm-up reads it too.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from producer.agents.android.policy.recipe import WarmUpRecipe
from producer.agents.built_policy import WarmUpPlan, WarmUpStep
from producer.algorithms import learning_rate
from schemas.training import Recipe

WARMUP_STEPS: Final = 20
FINAL_FACTOR: Final = 0.05
SCREENS_PER_BATCH: Final = 64
"""Of alignment."""


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


def warm_up_plan(recipe: WarmUpRecipe | None = None) -> WarmUpPlan:
    """As its training records it."""
    recipe = recipe or WarmUpRecipe()
    return WarmUpPlan(
        steps=tuple(warm_up_steps(recipe)),
        settings=json.loads(json.dumps(asdict(recipe))),
        recipe=lambda policy: recorded_recipe(policy, recipe),
    )


def recorded_recipe(policy: str, recipe: WarmUpRecipe) -> Recipe:
    """The warm-up's own settings: those of its last stage where they differ."""
    last = list(warm_up_steps(recipe))[-1]
    return Recipe(
        model_name=policy,
        lora_rank=None,
        learning_rate=recipe.imitation_learning_rate,
        batch_size=last.batch_size,
        group_size=1,
        groups_per_batch=last.batch_size,
        max_tokens=0,
        temperature=0.0,
        kl_penalty_coef=0.0,
        num_substeps=1,
        max_turns=recipe.max_turns,
        seed=recipe.seed,
        box_type="android",
        renderer_name="compact",
    )
