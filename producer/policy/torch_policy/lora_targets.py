"""Which weights of the language model a LoRA adapter changes.

The vision tower, embeddings, output layer and routers are never adapted.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from torch import nn

from producer.errors import UsageError, did_you_mean
from producer.policy.torch_policy.architectures import Architecture

_ATTENTION: Final = r"self_attn\.(q|k|v|o)_proj"
_MLP: Final = r"mlp\.(gate|up|down)_proj"
CHOICES: Final = {
    "all": rf"({_ATTENTION}|{_MLP})",
    "attention": _ATTENTION,
    "mlp": _MLP,
}
"""Named choices: linear layers of each layer of the language model. `all` and `mlp` adapt fused
experts too."""


@dataclass(frozen=True, slots=True)
class LoraTargets:
    """As peft's LoraConfig takes them."""

    modules: str | list[str]
    """Linear layers: a regular expression for their whole names, or their names."""
    parameters: list[str]
    """Fused expert weights, by the ends of their names or their names."""


def lora_targets(
    base: nn.Module, architecture: Architecture, asked: Sequence[str] | None
) -> LoraTargets:
    """The targets of a fresh adapter. UsageError if an entry of `asked` matches nothing.

    An entry is a choice of `CHOICES`, the end of a name (`q_proj`) or a regular expression for a
    whole name. None: `all`.
    """
    entries = list(asked or ("all",))
    linear, fused = _adaptable(base, architecture)
    if len(entries) == 1 and entries[0] in CHOICES:
        choice = entries[0]
        pattern = architecture.layers + CHOICES[choice]
        return LoraTargets(
            # peft refuses a pattern that matches nothing: every layer may have experts.
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
    """Names of all weights that `asked` means, as `lora_targets` reads it."""
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
