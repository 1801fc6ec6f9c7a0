"""Supervised training of a loaded network, step by step.

Deterministic for a seed, with the same bits on any number of cores (if torch uses one thread per
operation). Resuming from a saved state gives the same bits as an uninterrupted training. Knows no
events: a caller that records a training calls `step`, or passes `on_step`.
"""

import hashlib
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Generic

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from producer.algorithms.learning_rate import ScheduleName, learning_rate_factor
from producer.errors import MismatchError, NotFoundError
from producer.policy.memory_demand import TOKENS_PER_MICRO_BATCH
from producer.policy.prefix_clusters import shuffle_clusters
from producer.policy.torch_policy.state import sync_files
from producer.seeds import derived_seed
from producer.supervised.objective import Item, LoadedNetwork, Objective, autocast
from producer.supervised.optimizers import (
    MAX_GRADIENT_NORM,
    accumulate_gradients,
    make_optimizers,
    step_optimizers,
)

_WEIGHTS: Final = "trained.safetensors"
_OPTIMIZERS: Final = "optimizers.pt"


def steps_per_epoch(num_items: int, batch_size: int) -> int:
    """Number of optimiser steps that see every item once; the last batch may be smaller."""
    return math.ceil(num_items / batch_size)


def batch_of_step(
    step: int, num_items: int, batch_size: int, seed: int, clusters: Sequence[Sequence[int]] = ()
) -> list[int]:
    """Indices of the items of optimiser step `step` (from 0); each epoch has its own order.

    `clusters` is a partition of the indices. Clusters are shuffled as units and then cut into
    batches, which may split one. If empty, items are shuffled individually.
    """
    epoch, at = divmod(step, steps_per_epoch(num_items, batch_size))
    rng = random.Random(derived_seed(seed, "epoch", epoch))  # noqa: S311  # order, not secrets
    order = shuffle_clusters(clusters, rng) if clusters else rng.sample(range(num_items), num_items)
    return order[at * batch_size : (at + 1) * batch_size]


@dataclass(frozen=True, slots=True)
class FitSettings:
    """All inputs, besides network, items and objective, that determine the trained weights."""

    num_steps: int
    """Total number of optimiser steps."""
    batch_size: int
    """Number of items per optimiser step."""
    learning_rate: float
    """Peak learning rate of AdamW."""
    warmup_steps: int = 0
    """Number of optimiser steps of the linear rise."""
    schedule: ScheduleName = "cosine"
    """How the learning rate decays from its peak."""
    final_factor: float = 0.0
    """Fraction of the peak rate at which the decay ends."""
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's betas."""
    max_gradient_norm: float = MAX_GRADIENT_NORM
    """Global L2 norm to which a batch's gradient is clipped."""
    muon_learning_rate: float | None = None
    """Peak learning rate of Muon, which then trains the matrices; None: AdamW trains everything."""
    max_tokens: int = TOKENS_PER_MICRO_BATCH
    """Maximum padded tokens per pass; a longer item is a pass of its own."""
    seed: int = 0
    """Seed of the order of items and of dropout."""


@dataclass(frozen=True, slots=True)
class FitStep:
    """A completed optimiser step."""

    number: int
    """Step number, from 1."""
    loss: float
    """Mean over the batch's targets, before the step."""
    learning_rate: float
    """Learning rate of AdamW."""
    gradient_norm: float
    """Norm before clipping."""
    num_items: int
    num_targets: float
    epoch: int
    """Epoch, from 0."""


class Fit(Generic[Item]):
    """Trains the network's parameters that require gradients, in place. Not thread-safe.

    The network stays in evaluation mode; a LoRA adapter's dropout, the only one, is drawn from the
    seed (`seeded_dropout`).
    """

    def __init__(
        self,
        network: LoadedNetwork,
        items: Sequence[Item],
        objective: Objective[Item],
        settings: FitSettings,
        *,
        is_bfloat16: bool = False,
        pass_tokens: int | None = None,
        clusters: Sequence[Sequence[int]] = (),
    ) -> None:
        """Raises ValueError if there are no items or no trainable parameters.

        `clusters`: of the items' indices, as in `batch_of_step`.

        `pass_tokens`: a limit below the settings' for a network that keeps much per token. How sums
        are divided is not a setting, so a state can be resumed with another limit.
        `is_bfloat16`: matrix products are rounded; weights and optimisers stay float32.
        """
        named = {name: one for name, one in network.named_parameters() if one.requires_grad}
        if not named or not items:
            message = f"a fit needs weights and items; found {len(named)} and {len(items)}"
            raise ValueError(message)
        self._network = network
        self._items = items
        self._clusters = clusters
        self._objective = objective
        self._settings = settings
        self._is_bfloat16 = is_bfloat16
        self._max_tokens = min(settings.max_tokens, pass_tokens or settings.max_tokens)
        self._named: dict[str, nn.Parameter] = named
        self._parameters = list(named.values())
        self._optimizers = make_optimizers(
            self._parameters,
            learning_rate=settings.learning_rate,
            muon_learning_rate=settings.muon_learning_rate,
            weight_decay=settings.weight_decay,
            betas=settings.betas,
        )
        self._done = 0
        network.eval()

    @property
    def version(self) -> int:
        """Number of optimiser steps so far."""
        return self._done

    @property
    def is_finished(self) -> bool:
        """Whether all steps were taken."""
        return self._done >= self._settings.num_steps

    def run(self, on_step: Callable[[FitStep], None] = lambda _step: None) -> None:
        """Take the remaining steps; an exception from `on_step` ends it between two steps."""
        while not self.is_finished:
            on_step(self.step())

    def step(self) -> FitStep:
        """Take one optimiser step. Raises ValueError after the last one."""
        settings, objective, number = self._settings, self._objective, self._done
        if self.is_finished:
            message = f"all {settings.num_steps} steps are done"
            raise ValueError(message)
        num_items = len(self._items)
        batch = [
            self._items[index]
            for index in batch_of_step(
                number, num_items, settings.batch_size, settings.seed, self._clusters
            )
        ]
        num_targets = sum(objective.num_targets(item) for item in batch)

        def loss_of(items: Sequence[Item]) -> Tensor:
            with autocast(self._network, is_bfloat16=self._is_bfloat16):
                return objective.loss_sum(self._network, items) / num_targets

        gradient = accumulate_gradients(
            loss_of,
            [
                [batch[index] for index in part]
                for part in objective.micro_batches(self._network, batch, self._max_tokens)
            ],
            self._parameters,
            max_norm=settings.max_gradient_norm,
            dropout_seed=derived_seed(settings.seed, "dropout", number),
        )
        factor = learning_rate_factor(
            number,
            settings.num_steps,
            warmup_steps=settings.warmup_steps,
            final_factor=settings.final_factor,
            schedule=settings.schedule,
        )
        step_optimizers(self._optimizers, factor, self._parameters[0].device)
        self._done += 1
        return FitStep(
            number=self._done,
            loss=gradient.loss,
            learning_rate=settings.learning_rate * factor,
            gradient_norm=gradient.norm,
            num_items=len(batch),
            num_targets=num_targets,
            epoch=number // steps_per_epoch(num_items, settings.batch_size),
        )

    def save_state(self, folder: Path) -> None:
        """Write weights, optimisers and position to an existing folder; synced on return."""
        weights = {name: one.detach().contiguous() for name, one in self._named.items()}
        save_file(weights, folder / _WEIGHTS)
        optimizers = [rated.optimizer.state_dict() for rated in self._optimizers]
        stored = {"done": self._done, "identity": self._identity, "optimizers": optimizers}
        torch.save(stored, folder / _OPTIMIZERS)
        sync_files(folder)

    def load_state(self, folder: Path) -> None:
        """Restore what `save_state` wrote, bit for bit.

        Raises NotFoundError if there is no state, MismatchError if it belongs to other weights,
        items or settings.
        """
        if not (folder / _WEIGHTS).is_file() or not (folder / _OPTIMIZERS).is_file():
            message = f"{folder} is not a saved state: it needs {_WEIGHTS} and {_OPTIMIZERS}"
            raise NotFoundError(message)
        stored = torch.load(folder / _OPTIMIZERS, weights_only=True)
        if stored["identity"] != self._identity:
            message = (
                f"the state in {folder} is of other data or settings; continue with those that the"
                " training began with, or begin another"
            )
            raise MismatchError(message)
        weights = load_file(folder / _WEIGHTS)
        expected = {name: one.shape for name, one in self._named.items()}
        if {name: one.shape for name, one in weights.items()} != expected:
            message = (
                f"the weights in {folder} do not fit this policy; use the one that was trained"
            )
            raise MismatchError(message)
        with torch.no_grad():
            for name, one in self._named.items():
                one.copy_(weights[name])
        for rated, own in zip(self._optimizers, stored["optimizers"], strict=True):
            rated.optimizer.load_state_dict(own)
        self._done = int(stored["done"])

    @cached_property
    def _identity(self) -> str:
        """Hash of settings, items and clusters, in hex."""
        digest = hashlib.sha256()
        for part in (self._settings, *self._items, *self._clusters):
            digest.update(f"{part!r}\n".encode())
        return digest.hexdigest()
