"""A policy's training state on disk: adapter, optimiser and version.

A run resumed from it is bit-identical. There is no RNG state: every draw and shuffle uses a seed
that is passed in. Files are synced on return; the caller's manifest marks a state as complete. A
checkpoint is an adapter in PEFT's layout, or a whole policy in the hub's layout.
"""

import json
import os
import shutil
from hashlib import file_digest
from pathlib import Path
from typing import Final

import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from producer.errors import MismatchError, NotFoundError, UsageError
from producer.policy.adapter_settings import ALL_WEIGHTS, BASE, CONFIG, WEIGHTS
from producer.policy.torch_policy.adapters import (
    POLICY_ADAPTER,
    adapter_weights,
    load_adapter_weights,
    plain_adapter,
)
from producer.policy.torch_policy.hub import policy_folder
from producer.policy.torch_policy.loading import open_base
from producer.policy.torch_policy.network import Network

_ADAPTER: Final = "adapter.safetensors"
_OPTIMIZER: Final = "optimizer.pt"
_BESIDE_WEIGHTS: Final = frozenset({".json", ".jinja", ".txt"})
_OF_A_RESULT: Final = "training.json"
"""File that names the training whose result the folder is."""
_PREFIX: Final = "base_model.model."
"""Prefix of peft's names for the base's weights."""
_DTYPES: Final = {"F64": torch.float32, "F32": torch.float32, "F16": torch.float16}


def save_state(
    folder: Path, network: Network, optimizer: torch.optim.Optimizer, version: int
) -> None:
    """Write the state to an existing folder."""
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

    Raises NotFoundError if files are missing, MismatchError if the adapter has other shapes or
    belongs to weights other than those now in the policy's folder.
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
    if stored.get("base_fingerprint") != network.base_fingerprint:
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

    A network that trains all weights is written as a whole policy in the hub's layout, in float32.
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
    """Write the network's adapter with this name in PEFT's layout, synced.

    The policy's adapter is written to `folder`, any other to a subfolder with its name.
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
    """Sync the folder's files and directory entries to disk."""
    for path in [*(entry for entry in folder.iterdir() if entry.is_file()), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def trained_weights(adapted: PeftModel, base: PreTrainedModel) -> dict[str, Tensor]:
    """The whole policy's weights by their names in the base, including the trained ones."""
    trained = {
        name.removeprefix(_PREFIX): tensor.detach()
        for name, tensor in adapter_weights(adapted).items()
    }
    frozen = {
        name: tensor
        for name, tensor in base.state_dict().items()
        if ".modules_to_save." not in name and ".original_module." not in name
    }
    return {**frozen, **trained}


def write_policy(
    folder: Path,
    network: PreTrainedModel,
    weights: dict[str, Tensor],
    dtype: torch.dtype,
    source: str,
) -> None:
    """Write a policy in the hub's layout to an existing folder, with a single weights file.

    `source`: the folder or hub id whose other files (tokenizer, templates) are copied.
    """
    stored = {name: one.to(dtype) for name, one in weights.items()}
    network.save_pretrained(folder, state_dict=stored, max_shard_size="1000GB")
    config_file = folder / "config.json"
    config = json.loads(config_file.read_text(encoding="utf-8"))
    config["dtype"] = str(dtype).removeprefix("torch.")
    config_file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    copy_other_files(source, folder)


def copy_other_files(source: str, folder: Path) -> None:
    """Copy the other files of a policy's folder, except those that `folder` already has."""
    for path in sorted(policy_folder(source, local_files_only=True).iterdir()):
        is_kept = not path.name.endswith((".index.json", _OF_A_RESULT, CONFIG, BASE))
        written = folder / path.name
        if path.suffix in _BESIDE_WEIGHTS and is_kept and not written.exists():
            shutil.copyfile(path, written)


def merge_adapter(base_name: str, adapter: Path, output: Path) -> int:
    """Write base + adapter to the existing, empty folder `output`; returns its parameter count.

    The weights keep the type in which the base is stored. Raises UsageError or NotFoundError as
    loading does, or UsageError if the adapter does not fit.
    """
    base = open_base(base_name)
    network = base.network.float()  # the sum is rounded once
    adapted: PeftModel = plain_adapter(network, adapter, base.fingerprint)
    merged = adapted.merge_and_unload(safe_merge=True)
    if not all(torch.isfinite(parameter).all() for parameter in merged.parameters()):
        message = f"the adapter {adapter} makes weights that are not numbers; nothing is written"
        raise UsageError(message)
    merged.to(_DTYPES.get(base.stored_dtype, torch.bfloat16)).save_pretrained(output)
    copy_other_files(base_name, output)
    sync_files(output)
    return sum(parameter.numel() for parameter in merged.parameters())
