"""The interface Learner: a policy that can be updated, saved and restored. Imports no torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from producer.environments.environment import Screenshot
from producer.policy.policy import Policy, SampledTokens
from producer.task import Task


@dataclass(frozen=True, slots=True)
class TrainedTurn:
    """One turn of a trajectory, as the update uses it."""

    screenshot: Screenshot | None
    """None: the environment has no screen."""
    tokens: SampledTokens


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One rollout to train on."""

    task: Task
    turns: tuple[TrainedTurn, ...]
    advantage: float
    """Applied to every completion token of the rollout."""


@dataclass(frozen=True, slots=True)
class UpdateSettings:
    """Settings of one update.

    `warmup_steps` and `max_gradient_norm` have no configuration field yet: a run uses the defaults.
    """

    loss: Literal["importance_sampling", "ppo", "cispo"]
    learning_rate: float
    num_substeps: int
    """Optimiser steps per batch, each on an equal share of the shuffled trajectories."""
    temperature: float
    """Of the distribution that the trajectories were sampled from."""
    kl_penalty_coef: float
    """Weight of the KL penalty against the base policy; 0: none."""
    seed: int
    """Of the shuffle."""
    warmup_steps: int = 0
    """Optimiser steps over which the learning rate rises linearly to its value."""
    max_gradient_norm: float | None = None
    """Gradients are clipped to this global L2 norm; None: not clipped."""


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """Measurements of one update."""

    loss: float
    """Sum over substeps, each a sum over tokens (tinker-cookbook's semantics)."""
    kl_sample_train_v1: float
    """mean(logp_sampled - logp_trained) over completion tokens, measured before each substep's
    optimiser step, nats."""
    kl_sample_train_v2: float
    """0.5 * mean((logp_sampled - logp_trained)^2)."""
    entropy: float
    """-mean(logp_sampled)."""
    gradient_norm: float
    """Global L2 norm before clipping, mean over substeps."""
    num_tokens: int
    seconds: float


class Learner(Policy, Protocol):
    """A policy with an optimiser."""

    def update(self, trajectories: Sequence[Trajectory], settings: UpdateSettings) -> UpdateResult:
        """One policy-gradient update; increments `version`.

        An empty batch changes no weights and still increments `version`.
        """
        ...

    def save_state(self, folder: Path) -> None:
        """Write adapter, optimiser and version into an existing folder; synced on return."""
        ...

    def load_state(self, folder: Path) -> None:
        """Restore what `save_state` wrote, bit for bit."""
        ...

    def save_checkpoint(self, folder: Path) -> str:
        """Write the adapter in PEFT's layout; returns the sha256 of its weights file, hex."""
        ...
