"""A small policy that is built and warmed up on this machine. Imports no torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

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
    learning_rate: float
    """Of the last stage, at its peak."""
    max_turns: int
    """Of a demonstration."""
    seed: int
    box_type: str
    """As `Environment.box_type`."""
    renderer_name: str
    """Its codec."""

    def recipe(self, policy: str) -> Recipe:
        """The columns of the training, of the policy with this name: those of its last stage."""
        batch_size = self.steps[-1].batch_size
        return Recipe(
            model_name=policy,
            lora_rank=None,
            learning_rate=self.learning_rate,
            batch_size=batch_size,
            group_size=1,
            groups_per_batch=batch_size,
            max_tokens=0,
            temperature=0.0,
            kl_penalty_coef=0.0,
            num_substeps=1,
            max_turns=self.max_turns,
            seed=self.seed,
            box_type=self.box_type,
            renderer_name=self.renderer_name,
        )


@dataclass(frozen=True, slots=True)
class BuiltPolicy:
    """`model_name` demo of one agent."""

    name: str
    """Of its folder below CUA_HOME/policies."""
    plan: Callable[[], WarmUpPlan]
    """What its warm-up is recorded with."""
    ensure: Callable[[Path, OnProgress, OnWait], Path]
    """Its folder below this one, made if it does not exist."""
    build_shape: Callable[[Path], None]
    """Writes a policy of its shape with random weights into a folder."""
