"""The state of a supervised training on disk: trained weights, optimisers, position.

There is no generator's state: order and dropout come from the seed and the position. Files are
synced on return; the caller decides when a folder counts as complete.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from producer.errors import MismatchError, NotFoundError
from producer.policy.torch_policy.state import sync_files

_WEIGHTS: Final = "trained.safetensors"
_OPTIMIZERS: Final = "optimizers.pt"


@dataclass(frozen=True, slots=True)
class FitState:
    """Where a training stands, and what it is."""

    done: int
    """Optimiser steps."""
    identity: str
    """Hash of settings and items."""


def hash_of(parts: Iterable[object]) -> str:
    """Hex sha256 over the parts' `repr`, in order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{part!r}\n".encode())
    return digest.hexdigest()


def save_fit_state(
    folder: Path,
    named: Mapping[str, nn.Parameter],
    optimizers: Sequence[torch.optim.Optimizer],
    state: FitState,
) -> None:
    """Write the state into an existing folder; synced on return."""
    weights = {name: one.detach().contiguous() for name, one in named.items()}
    save_file(weights, folder / _WEIGHTS)
    torch.save(
        {
            "done": state.done,
            "identity": state.identity,
            "optimizers": [optimizer.state_dict() for optimizer in optimizers],
        },
        folder / _OPTIMIZERS,
    )
    sync_files(folder)


def load_fit_state(
    folder: Path,
    named: Mapping[str, nn.Parameter],
    optimizers: Sequence[torch.optim.Optimizer],
    identity: str,
) -> FitState:
    """Restore weights and optimisers; returns where the training stood.

    NotFoundError if files are missing, MismatchError if they are of another training.
    """
    if not (folder / _WEIGHTS).is_file() or not (folder / _OPTIMIZERS).is_file():
        message = f"{folder} is not a saved state: it needs {_WEIGHTS} and {_OPTIMIZERS}"
        raise NotFoundError(message)
    stored = torch.load(folder / _OPTIMIZERS, weights_only=True)
    if stored["identity"] != identity:
        message = (
            f"the state in {folder} is of other data or settings; continue with those that the"
            " training began with, or begin another"
        )
        raise MismatchError(message)
    weights = load_file(folder / _WEIGHTS)
    expected = {name: one.shape for name, one in named.items()}
    if {name: one.shape for name, one in weights.items()} != expected:
        message = f"the weights in {folder} do not fit this policy; use the one that was trained"
        raise MismatchError(message)
    with torch.no_grad():
        for name, one in named.items():
            one.copy_(weights[name])
    for optimizer, own in zip(optimizers, stored["optimizers"], strict=True):
        optimizer.load_state_dict(own)
    return FitState(int(stored["done"]), identity)
