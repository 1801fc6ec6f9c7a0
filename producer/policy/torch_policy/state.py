"""A policy's training state on disk: adapter, optimiser and version.

A run that continues from it is bit-identical. There is no RNG state: every draw and shuffle comes
from a seed that is passed in. Files are synced on return; the caller's manifest marks a state as
complete.
"""

import json
import os
from hashlib import file_digest
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import load_file, save_file

from producer.errors import MismatchError, NotFoundError
from producer.policy.adapter_settings import ALL_WEIGHTS, BASE, WEIGHTS
from producer.policy.torch_policy.adapters import (
    POLICY_ADAPTER,
    adapter_weights,
    load_adapter_weights,
)
from producer.policy.torch_policy.all_weights import trained_weights, write_policy
from producer.policy.torch_policy.network import Network

_ADAPTER: Final = "adapter.safetensors"
_OPTIMIZER: Final = "optimizer.pt"


def save_state(
    folder: Path, network: Network, optimizer: torch.optim.Optimizer, version: int
) -> None:
    """Write the state into an existing folder."""
    save_file(adapter_weights(network.adapted), folder / _ADAPTER)
    torch.save(
        {
            "version": version,
            "optimizer": optimizer.state_dict(),
            "base_fingerprint": network.base_fingerprint,
        },
        folder / _OPTIMIZER,
    )
    sync_files(folder)


def load_state(folder: Path, network: Network, optimizer: torch.optim.Optimizer) -> int:
    """Restore adapter and optimiser; returns the version.

    NotFoundError if files are missing, MismatchError if the adapter has other shapes or belongs to
    other weights than the policy's folder has now.
    """
    if not (folder / _ADAPTER).is_file() or not (folder / _OPTIMIZER).is_file():
        message = (
            f"{folder} is not a saved state: it needs {_ADAPTER} and {_OPTIMIZER}, and has"
            f" {', '.join(sorted(path.name for path in folder.glob('*'))) or 'no files'}"
        )
        raise NotFoundError(message)
    adapter = load_file(folder / _ADAPTER)
    expected = {name: tensor.shape for name, tensor in adapter_weights(network.adapted).items()}
    if {name: tensor.shape for name, tensor in adapter.items()} != expected:
        message = (
            f"the adapter in {folder} does not fit this policy; use the lora_rank and model_name"
            " that it was saved with"
        )
        raise MismatchError(message)
    stored = torch.load(folder / _OPTIMIZER, weights_only=True)
    # States of older releases do not record it.
    if stored.get("base_fingerprint", network.base_fingerprint) != network.base_fingerprint:
        message = (
            f"the weights of the policy {network.name} have changed since {folder} was saved; put"
            " back those that the training began with, or begin another training"
        )
        raise MismatchError(message)
    load_adapter_weights(network.adapted, adapter)
    optimizer.load_state_dict(stored["optimizer"])
    return int(stored["version"])


def save_checkpoint(folder: Path, network: Network) -> str:
    """Write the adapter in PEFT's layout; returns the sha256 of its weights file, hex.

    Of a network that trains all weights: the whole policy in the hub's layout, in float32.
    """
    if network.trains_all:
        folder.mkdir(parents=True, exist_ok=True)
        weights = trained_weights(network.adapted, network.base)
        write_policy(folder, network.base, weights, torch.float32, network.name)
        network.processor.save_pretrained(folder)
        sync_files(folder)
        return _file_sha256(folder / ALL_WEIGHTS)
    save_adapter(folder, network, POLICY_ADAPTER)
    return _file_sha256(folder / WEIGHTS)


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def save_adapter(folder: Path, network: Network, name: str) -> None:
    """Write the network's adapter of this name in PEFT's layout, synced.

    The policy's into `folder`, another into a folder of its name in it.
    """
    # Embeddings are never adapted; by default peft would ask the hub whether they were resized.
    network.adapted.save_pretrained(
        str(folder), selected_adapters=[name], save_embedding_layers=False
    )
    own = folder if name == POLICY_ADAPTER else folder / name
    base = {"name": network.name, "fingerprint": network.base_fingerprint}
    (own / BASE).write_text(json.dumps(base, indent=2) + "\n")
    sync_files(own)


def sync_files(folder: Path) -> None:
    """Sync the folder's files and entries to disk."""
    for path in [*(entry for entry in folder.iterdir() if entry.is_file()), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
