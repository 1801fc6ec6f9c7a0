"""The interface Learner: a policy that can be updated, saved and restored.

This file imports no torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from producer.environments.environment import Screenshot
from producer.policy.policy import Policy, SampledTokens
from producer.task import Task


@dataclass(frozen=True, slots=True)
class TrainedTurn:
    """One turn of a trajectory, with everything the update needs."""

    screenshot: Screenshot
    tokens: SampledTokens


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One rollout that trains the policy."""

    task: Task
    turns: tuple[TrainedTurn, ...]
    advantage: float
    """Of every completion token of the rollout."""


@dataclass(frozen=True, slots=True)
class UpdateSettings:
    """The part of the configuration that an update needs."""

    loss: Literal["importance_sampling", "ppo", "cispo"]
    learning_rate: float
    num_substeps: int
    """Optimiser steps over the batch; trajectories are split among them in order after a seeded
    shuffle."""
    temperature: float
    """Log-probs are those of the tempered distribution, as sampled."""
    kl_penalty_coef: float
    seed: int
    warmup_steps: int = 0
    """Over the first so many optimiser steps the learning rate rises linearly to its value."""
    max_gradient_norm: float | None = None
    """Gradients of a greater global L2 norm are scaled down to it; None: never."""


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """What an update did."""

    loss: float
    """Sum of the substeps' losses (each a sum over tokens, tinker-cookbook's semantics)."""
    kl_sample_train_v1: float
    """mean(logp_sampled - logp_trained) over completion tokens before their substep's update, nats.
    """
    kl_sample_train_v2: float
    """0.5 * mean((logp_sampled - logp_trained)^2)."""
    entropy: float
    """-mean(logp_sampled)."""
    gradient_norm: float
    """Global L2 norm before clipping, mean over substeps."""
    num_tokens: int
    seconds: float


class Learner(Policy, Protocol):
    """A policy with an optimiser. `update` raises `version` by one."""

    def update(self, trajectories: Sequence[Trajectory], settings: UpdateSettings) -> UpdateResult:
        """One batch of policy gradient.

        An empty batch changes no weight and still raises `version`.
        """
        ...

    def save_state(self, folder: Path) -> None:
        """Adapter, optimiser, RNG and version into an existing folder.

        Files are synced on return.
        """
        ...

    def load_state(self, folder: Path) -> None:
        """The inverse, bit for bit."""
        ...

    def save_checkpoint(self, folder: Path) -> str:
        """The adapter in PEFT's layout; returns the sha256 of its weights file."""
        ...
