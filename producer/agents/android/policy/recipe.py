"""The default policy's recipe: its name, and the steps of its warm-up. Imports no torch."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from producer.agents.android.goals import goal_tasks
from producer.agents.built_policy import WarmUpPlan, WarmUpStep
from producer.algorithms import learning_rate
from schemas.ids import content_hash

VERSION: Final = 5
"""Increment when a change of the code makes a different policy from the same recipe."""

_HASHED_NAMES: Final = {
    "alignment_steps": "seeing_steps",
    "alignment_learning_rate": "seeing_rate",
    "imitation_phases": "phases",
    "imitation_learning_rate": "acting_rate",
    "muon_learning_rate": "matrix_rate",
    "grounding_per_batch": "pointings_per_batch",
}
"""Renamed fields. The hash keeps their original names, so that policies built before the renaming
are still found."""


@dataclass(frozen=True, slots=True)
class ImitationPhase:
    """A part of behaviour cloning with its own learning-rate schedule."""

    num_steps: int
    episodes_per_batch: int
    grounding_per_batch: int
    """Grounding sequences per batch."""


def demonstrated_task_ids() -> tuple[str, ...]:
    """Every single goal and every other training pair; no held-out pair."""
    return tuple(task.task_id for task in (*goal_tasks("single"), *goal_tasks("train")[::2]))


@dataclass(frozen=True, slots=True)
class WarmUpRecipe:
    """Everything that determines the warmed-up policy."""

    task_ids: tuple[str, ...] = field(default_factory=demonstrated_task_ids)
    num_episodes: int = 1000
    noise: float = 0.3
    """Probability of a random action in a demonstration; random actions are not imitated."""
    max_turns: int = 16
    """Maximum turns of a demonstration."""
    alignment_steps: int = 250
    alignment_learning_rate: float = 5e-3
    imitation_phases: tuple[ImitationPhase, ...] = (
        ImitationPhase(num_steps=140, episodes_per_batch=0, grounding_per_batch=24),
        ImitationPhase(num_steps=350, episodes_per_batch=16, grounding_per_batch=6),
    )
    """A phase of grounding alone comes first, because grounding is harder than choosing the
    action."""
    imitation_learning_rate: float = 3e-3
    """AdamW's learning rate."""
    muon_learning_rate: float = 1e-2
    seed: int = 0

    @property
    def num_steps(self) -> int:
        """Total optimiser steps of both stages."""
        return self.alignment_steps + sum(phase.num_steps for phase in self.imitation_phases)

    @property
    def policy_name(self) -> str:
        """`demo-<hash of the recipe>`: the policy's folder below CUA_HOME/policies."""
        return f"demo-{content_hash([VERSION, _with_hashed_names(asdict(self))])[:12]}"


def _with_hashed_names(value: Any) -> Any:
    if isinstance(value, dict):
        return {_HASHED_NAMES.get(key, key): _with_hashed_names(v) for key, v in value.items()}
    if isinstance(value, tuple):
        return tuple(_with_hashed_names(item) for item in value)
    return value


WARMUP_STEPS: Final = 20
FINAL_FACTOR: Final = 0.05
SCREENS_PER_BATCH: Final = 64
"""Batch size of the alignment stage, in screens."""


def learning_rate_factor(step: int, num_steps: int) -> float:
    """Learning-rate factor at optimiser step `step`, which counts from 0.

    Linear warm-up, then cosine decay to `FINAL_FACTOR`.
    """
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
    """The plan that is recorded with the warm-up's training."""
    recipe = recipe or WarmUpRecipe()
    return WarmUpPlan(
        steps=tuple(warm_up_steps(recipe)),
        settings=json.loads(json.dumps(asdict(recipe))),
        learning_rate=recipe.imitation_learning_rate,
        max_turns=recipe.max_turns,
        seed=recipe.seed,
        box_type="android",
        renderer_name="compact",
    )
