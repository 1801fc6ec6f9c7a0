"""The architectures that can be trained, unsupported settings, and the weights LoRA adapts.

transformers' Auto classes load a policy; this table has what the rest of the code needs to know
about it. The vision tower, embeddings, output layer and routers are never adapted.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from torch import nn

from producer.errors import UsageError
from schemas.advice import did_you_mean


@dataclass(frozen=True, slots=True)
class Architecture:
    """Properties of a `model_type` that the code needs."""

    model_type: str
    """`model_type` in `config.json`."""
    title: str
    """Name as its makers write it."""
    sees_screens: bool
    """True: it has a vision tower and three-axis positions. False: text only."""
    layers: str
    """Regular expression for the names of the language model's layers, up to the last dot."""
    expert_parameters: tuple[str, ...] = ()
    """Names, within a layer, of a mixture of experts' fused weights. The router is not adapted."""


_LAYERS_WITH_TOWER: Final = r".*language_model\.layers\.\d+\."
_LAYERS: Final = r"model\.layers\.\d+\."

ARCHITECTURES: Final = {
    item.model_type: item
    for item in (
        Architecture("qwen3_vl", "Qwen3-VL", sees_screens=True, layers=_LAYERS_WITH_TOWER),
        Architecture(
            "qwen3_vl_moe",
            "Qwen3-VL-MoE",
            sees_screens=True,
            layers=_LAYERS_WITH_TOWER,
            expert_parameters=("mlp.experts.gate_up_proj", "mlp.experts.down_proj"),
        ),
        Architecture("qwen2_5_vl", "Qwen2.5-VL", sees_screens=True, layers=_LAYERS_WITH_TOWER),
        Architecture("qwen2", "Qwen2", sees_screens=False, layers=_LAYERS),
        Architecture("qwen3", "Qwen3", sees_screens=False, layers=_LAYERS),
        Architecture("llama", "Llama", sees_screens=False, layers=_LAYERS),
    )
}

_STATIC_ROPES: Final = frozenset({"default", "linear", "yarn", "llama3", "mrope"})
"""Rotary embeddings whose frequencies do not depend on the sequence length, so that cached keys
stay valid when the sequence grows."""


def architecture_of(name: str, config: dict[str, Any]) -> Architecture:
    """The architecture that `config.json` names. Raises UsageError if it is not in the table."""
    found = str(config.get("model_type"))
    architecture = ARCHITECTURES.get(found)
    if architecture is None:
        message = (
            f"policy {name!r} has the architecture {found!r}, which is not supported; choose a"
            f" model_name of {', '.join(ARCHITECTURES)}{did_you_mean(found, tuple(ARCHITECTURES))}"
        )
        raise UsageError(message)
    for part in (config, config.get("text_config"), config.get("vision_config")):
        quantised = isinstance(part, dict) and (
            part.get("quantization_config") or part.get("compression_config")
        )
        if quantised:
            method = quantised.get("quant_method") if isinstance(quantised, dict) else None
            message = (
                f"policy {name!r} is quantised ({method or 'quantization_config'}), which is not"
                " supported; choose the unquantised weights"
            )
            raise UsageError(message)
    return architecture


def check_text_config(name: str, config: Any) -> None:
    """Raises UsageError for language model settings that sampling with a cache does not support.

    `config` is the text part of a transformers configuration.
    """
    kinds = set(getattr(config, "layer_types", None) or ()) - {"full_attention"}
    if kinds:
        message = (
            f"policy {name!r} uses {', '.join(sorted(kinds))}, which is not supported; set"
            " use_sliding_window to false in its config.json if it was trained so"
        )
        raise UsageError(message)
    rope = str((getattr(config, "rope_parameters", None) or {}).get("rope_type", "default"))
    if rope not in _STATIC_ROPES:
        message = (
            f"policy {name!r} has the rotary embedding {rope!r}, which changes with the length of a"
            f" sequence and is not supported; choose one of {', '.join(sorted(_STATIC_ROPES))}"
        )
        raise UsageError(message)


_ATTENTION: Final = r"self_attn\.(q|k|v|o)_proj"
_MLP: Final = r"mlp\.(gate|up|down)_proj"
CHOICES: Final = {
    "all": rf"({_ATTENTION}|{_MLP})",
    "attention": _ATTENTION,
    "mlp": _MLP,
}
"""Named choices of linear layers in the language model's layers. `all` and `mlp` adapt fused
experts too."""


@dataclass(frozen=True, slots=True)
class LoraTargets:
    """Targets in the form that peft's LoraConfig takes."""

    modules: str | list[str]
    """Linear layers: a regular expression that matches their full names, or their names."""
    parameters: list[str]
    """Fused expert weights: their names or the ends of their names."""


def lora_targets(
    base: nn.Module, architecture: Architecture, asked: Sequence[str] | None
) -> LoraTargets:
    """The targets of a fresh adapter. Raises UsageError if an entry of `asked` matches nothing.

    An entry is a choice in `CHOICES`, the end of a name (`q_proj`), or a regular expression for a
    full name. None means `all`.
    """
    entries = list(asked or ("all",))
    linear, fused = _adaptable(base, architecture)
    if len(entries) == 1 and entries[0] in CHOICES:
        choice = entries[0]
        pattern = architecture.layers + CHOICES[choice]
        return LoraTargets(
            # peft refuses a pattern that matches nothing, as when all layers have experts.
            modules=pattern if any(re.fullmatch(pattern, name) for name in linear) else [],
            parameters=[] if choice == "attention" else list(architecture.expert_parameters),
        )
    names = _matched(entries, [*linear, *fused], architecture)
    return LoraTargets(
        modules=[name for name in linear if name in names],
        parameters=[name for name in fused if name in names],
    )


def target_names(
    base: nn.Module, architecture: Architecture, asked: Sequence[str] | None
) -> frozenset[str]:
    """Names of all weights that `asked` selects, as interpreted by `lora_targets`."""
    linear, fused = _adaptable(base, architecture)
    return _matched(list(asked or ("all",)), [*linear, *fused], architecture)


def _adaptable(base: nn.Module, architecture: Architecture) -> tuple[list[str], list[str]]:
    """Names of the linear layers and of the fused expert weights, in the network's order."""
    layers = re.compile(architecture.layers)
    linear = [
        name
        for name, module in base.named_modules()
        if isinstance(module, nn.Linear) and layers.match(name)
    ]
    fused = [
        name
        for name, _ in base.named_parameters()
        if layers.match(name) and name.endswith(architecture.expert_parameters)
    ]
    return linear, fused


def _matched(entries: list[str], names: list[str], architecture: Architecture) -> frozenset[str]:
    matched: set[str] = set()
    for entry in entries:
        found = {name for name in names if _matches(entry, name, architecture)}
        if not found:
            ends = sorted({name.rpartition(".")[2] for name in names})
            message = (
                f"target_modules: {entry!r} matches no linear layer of the language model; choose"
                f" {', '.join(CHOICES)}, or of {', '.join(ends)}"
                f"{did_you_mean(entry, (*CHOICES, *ends))}"
            )
            raise UsageError(message)
        matched |= found
    return frozenset(matched)


def _matches(entry: str, name: str, architecture: Architecture) -> bool:
    if entry in CHOICES:
        is_expert = entry != "attention" and name.endswith(architecture.expert_parameters)
        return is_expert or re.fullmatch(architecture.layers + CHOICES[entry], name) is not None
    if name == entry or name.endswith(f".{entry}"):
        return True
    try:
        return re.fullmatch(entry, name) is not None
    except re.error as error:
        message = f"target_modules: {entry!r} is not a regular expression ({error})"
        raise UsageError(message) from error
