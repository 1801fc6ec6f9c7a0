"""The settings of a saved adapter in its folder (PEFT's layout), without torch."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from producer.errors import NotFoundError, UsageError

CONFIG: Final = "adapter_config.json"
WEIGHTS: Final = "adapter_model.safetensors"
"""PEFT's name for the weights file of an adapter."""
VALUE_HEAD: Final = "value_head.safetensors"
"""Our file in the same folder, written if the advantage was gae; peft does not read it."""
REWARD_ADAPTER: Final = "prime"
"""Name of the reward model's adapter, and of its subfolder in PEFT's layout, which is written if
the advantage was prime."""
OF_ADVANTAGES: Final = (VALUE_HEAD, REWARD_ADAPTER)
"""Files and folders with weights learned for an advantage."""
ALL_WEIGHTS: Final = "model.safetensors"
"""Weights of a policy whose weights were all trained, in the hub's layout."""
INDEX: Final = "model.safetensors.index.json"
"""Lists the weight files of a policy that is split into several."""
BASE: Final = "base_policy.json"
"""Our file in the same folder: identifies the base weights the adapter belongs to."""

_UNSUPPORTED: Final = (
    "modules_to_save",
    "trainable_token_indices",
    "layer_replication",
    "use_dora",
    "use_qalora",
    "lora_bias",
    "alora_invocation_tokens",
    "arrow_config",
    "monteclora_config",
    "velora_config",
    "kasa_config",
    "fan_in_fan_out",
)
"""Fields of LoraConfig that change more than low-rank weights, or how they are applied."""
_PLAIN_INITS: Final = (None, True, False, "gaussian", "orthogonal")
"""Initialisations that leave the base weights unchanged."""


@dataclass(frozen=True, slots=True)
class AdapterSettings:
    """The settings of a LoRA adapter in `adapter_config.json`."""

    rank: int
    alpha: float
    targets: tuple[str, ...]
    """Names or regular expressions of the adapted weights, as in `target_modules`."""
    base_name: str | None
    """Folder or hub id of the base that it was trained on; None if not recorded."""
    base_fingerprint: str | None
    """Fingerprint of the base's weights; None if this program did not save the adapter."""


def is_adapter(folder: Path) -> bool:
    """Whether the folder holds only an adapter; one next to full weights is not loaded."""
    has_weights = any((folder / name).is_file() for name in (ALL_WEIGHTS, INDEX))
    return (folder / CONFIG).is_file() and not has_weights


def read_adapter_settings(folder: Path) -> AdapterSettings:
    """Raises NotFoundError if `folder` has no adapter, UsageError if it cannot be trained here."""
    if not (folder / CONFIG).is_file():
        message = (
            f"{folder} is not an adapter in PEFT's layout: it has no {CONFIG}; pass a checkpoint's"
            " folder"
        )
        raise NotFoundError(message)
    if not (folder / WEIGHTS).is_file():
        message = f"the adapter {folder} has no {WEIGHTS}; pass a checkpoint's folder"
        raise NotFoundError(message)
    config = _read_json(folder / CONFIG)
    kind = config.get("peft_type")
    if kind != "LORA":
        message = f"the adapter {folder} is {kind!r}; only LORA is supported"
        raise UsageError(message)
    unsupported = [field for field in _UNSUPPORTED if config.get(field)]
    if config.get("bias", "none") != "none":
        unsupported.append("bias")
    if config.get("init_lora_weights") not in _PLAIN_INITS:
        unsupported.append(f"init_lora_weights {config['init_lora_weights']!r}")
    if unsupported:
        message = (
            f"the adapter {folder} uses {', '.join(unsupported)}, which is not supported; merge it"
            " into its base with PEFT and train on the result"
        )
        raise UsageError(message)
    base = _read_json(folder / BASE) if (folder / BASE).is_file() else {}
    try:
        return AdapterSettings(
            rank=int(config["r"]),
            alpha=float(config["lora_alpha"]),
            targets=_targets(config),
            base_name=config.get("base_model_name_or_path") or None,
            base_fingerprint=base.get("fingerprint"),
        )
    except (KeyError, TypeError, ValueError) as error:
        message = f"{folder / CONFIG} lacks a valid r, lora_alpha or target_modules ({error})"
        raise UsageError(message) from error


def name_targets(folder: Path, names: Iterable[str]) -> None:
    """Replace the pattern of the adapted linear layers with their names; SGLang takes no pattern.

    `names`: full, since the last parts may be those of layers of the vision tower too.
    """
    config = _read_json(folder / CONFIG) | {"target_modules": sorted(names)}
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def _targets(config: dict[str, Any]) -> tuple[str, ...]:
    modules = config.get("target_modules") or []
    names = [modules] if isinstance(modules, str) else sorted(modules)
    return (*names, *sorted(config.get("target_parameters") or []))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        message = f"{path} is not JSON ({error}); copy the adapter again"
        raise UsageError(message) from error
    if not isinstance(content, dict):
        message = f"{path} is not a JSON object; copy the adapter again"
        raise UsageError(message)
    return content
