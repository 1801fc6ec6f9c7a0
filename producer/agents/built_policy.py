"""A small policy that is built and warmed up on this machine. Imports no torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from schemas.training import Recipe

OnProgress = Callable[[str, int, int, float | None], None]
"""Called with (policy name, optimiser steps done, total steps, loss); loss is None while
demonstrations are being generated."""
OnWait = Callable[[str], None]
"""Called with the name of the process that builds the policy, while this one waits for it."""
OnStep = Callable[[int, float | None], None]
"""Called with (optimiser steps done, loss); loss is None while demonstrations are being
generated."""


@dataclass(frozen=True, slots=True)
class WarmUpStep:
    """One optimiser step of a warm-up."""

    stage: str
    """What is trained: `alignment`, `grounding` or `imitation`."""
    batch_size: int
    """Items in the batch."""
    learning_rate: float
    """AdamW's learning rate."""


@dataclass(frozen=True, slots=True)
class WarmUpPlan:
    """The warm-up of one policy: its optimiser steps and the settings recorded with it."""

    steps: tuple[WarmUpStep, ...]
    """Every optimiser step, in order."""
    settings: Mapping[str, JsonValue]
    """The recipe, as the training's configuration records it."""
    learning_rate: float
    """Peak learning rate of the last stage."""
    max_turns: int
    """Maximum turns of a demonstration."""
    seed: int
    box_type: str
    """See `Environment.box_type`."""
    renderer_name: str
    """Name of the codec."""

    def recipe(self, policy: str) -> Recipe:
        """The training's recipe columns for the policy of this name, taken from the last stage."""
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
    """The policy that `model_name` demo selects for one agent."""

    name: str
    """Name of the policy's folder in CUA_HOME/policies."""
    plan: Callable[[], WarmUpPlan]
    """Creates the plan that is recorded with the warm-up."""
    make: Callable[[Path, OnStep], None]
    """Writes the warmed-up policy into an empty folder."""
    build_shape: Callable[[Path], None]
    """Writes a policy of the same shape with random weights into a folder."""
    task_ids: tuple[str, ...] | None = None
    """Tasks of its warm-up, if the words of other tasks are unknown to it; None: not limited."""
