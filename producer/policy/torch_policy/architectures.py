"""The architectures that can be trained: one table, and the settings that none of them supports.

A policy is loaded by transformers' Auto classes; this table has what the rest of the code needs to
know of it.
"""

from dataclasses import dataclass
from typing import Any, Final

from producer.errors import UsageError, did_you_mean


@dataclass(frozen=True, slots=True)
class Architecture:
    """What the code needs to know of a `model_type`."""

    model_type: str
    """Of `config.json`."""
    title: str
    """As its makers write it."""
    sees_screens: bool
    """With a vision tower and positions of three axes; otherwise text only."""
    layers: str
    """Regular expression for the names of the language model's layers, up to the last dot."""
    expert_parameters: tuple[str, ...] = ()
    """Fused weights of a mixture of experts, named from the layer on. The router is no target."""


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
    )
}

_STATIC_ROPES: Final = frozenset({"default", "linear", "yarn", "llama3", "mrope"})
"""Rotary embeddings whose frequencies do not depend on the sequence's length: a cached key stays
right when the sequence grows."""


def architecture_of(name: str, config: dict[str, Any]) -> Architecture:
    """The architecture that `config.json` names. UsageError if it is none of the table's."""
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
    """UsageError for settings of the language model that sampling with a cache does not support.

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
