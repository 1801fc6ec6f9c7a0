"""The recipe of the small text policy, and the folder name that identifies it. Imports no torch."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from producer.agents.built_policy import WarmUpPlan, WarmUpStep
from producer.algorithms.learning_rate import learning_rate_factor
from schemas.ids import content_hash

VERSION: Final = 5
"""Increment when a change of the code makes a different policy from the same recipe."""
NUM_ROUNDS: Final = 3
"""Maximum rounds of a demonstration: the operation, the answer, and one added by a mistake."""


@dataclass(frozen=True, slots=True)
class TextRecipe:
    """Everything that determines the warmed-up policy."""

    num_entries: int = 2600
    """Number of generated entries; those about held-out tables are then left out."""
    entries_seed: int = 101
    """Seed of the entries, different from the default seeds of runs."""
    noise: float = 0.25
    """Probability of a mistake in each round of a demonstration: no action, an answer without a
    query, or another query. Mistakes are imitated, because reinforcement learning has to undo
    them."""
    num_steps: int = 450
    batch_size: int = 16
    """Sessions per optimiser step."""
    learning_rate: float = 3e-3
    """Learning rate of AdamW, which trains everything except the matrices."""
    muon_learning_rate: float = 1e-2
    warmup_steps: int = 20
    final_factor: float = 0.05
    seed: int = 0

    @property
    def policy_name(self) -> str:
        """`sql-demo-<hash of the recipe>`: the policy's folder below CUA_HOME/policies."""
        return f"sql-demo-{content_hash([VERSION, asdict(self)])[:12]}"


def warm_up_plan(recipe: TextRecipe | None = None) -> WarmUpPlan:
    """The plan that is recorded with the policy's training."""
    recipe = recipe or TextRecipe()
    return WarmUpPlan(
        steps=tuple(_steps(recipe)),
        settings=json.loads(json.dumps(asdict(recipe))),
        learning_rate=recipe.learning_rate,
        max_turns=NUM_ROUNDS,
        seed=recipe.seed,
        box_type="database",
        renderer_name="dbbench",
    )


def _steps(recipe: TextRecipe) -> Iterator[WarmUpStep]:
    for step in range(recipe.num_steps):
        factor = learning_rate_factor(
            step,
            recipe.num_steps,
            warmup_steps=recipe.warmup_steps,
            final_factor=recipe.final_factor,
        )
        yield WarmUpStep("imitation", recipe.batch_size, recipe.learning_rate * factor)
