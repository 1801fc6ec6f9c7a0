"""Merges an adapter into its base: for a policy to be written, and while a small one samples.

While sampling: one matrix product per linear layer instead of three.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import torch
from peft import PeftModel
from peft.tuners.lora import LoraLayer
from peft.tuners.lora.layer import ParamWrapper
from torch import Tensor

from producer.errors import UsageError
from producer.policy.torch_policy.adapters import plain_adapter
from producer.policy.torch_policy.all_weights import copy_other_files
from producer.policy.torch_policy.loading import open_base
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.state import sync_files

MAX_MERGED_WEIGHTS = 50_000_000
"""Adapted weights up to which merging pays: it keeps a copy of them, and in a larger network the
three products are bound by memory bandwidth anyway."""


_DTYPES: Final = {"F64": torch.float32, "F32": torch.float32, "F16": torch.float16}


def merge_adapter(base_name: str, adapter: Path, output: Path) -> int:
    """Write base + adapter into the existing, empty folder `output`; returns its parameters.

    In the type that the base's weights are stored in. UsageError or NotFoundError as for loading,
    and if the adapter does not fit.
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


@contextmanager
def merged_adapter(network: Network) -> Iterator[None]:
    """Inside the context the adapted layers hold base + adapter; on exit the base is restored.

    Log-probs differ by rounding (about 1e-6); the restored base is bit-identical. Does nothing
    unless the network is float32 with at most `MAX_MERGED_WEIGHTS` adapted weights.
    """
    layers = [module for module in network.adapted.modules() if isinstance(module, LoraLayer)]
    weights = [_adapted_weight(layer) for layer in layers]
    if (
        network.base.dtype != torch.float32
        or sum(weight.numel() for weight in weights) > MAX_MERGED_WEIGHTS
    ):
        yield
        return
    originals = [weight.clone() for weight in weights]
    network.adapted.merge_adapter()
    try:
        yield
    finally:
        # peft's unmerge subtracts the adapter again, which changes the base's last bits.
        for layer, weight, original in zip(layers, weights, originals, strict=True):
            weight.copy_(original)
            layer.merged_adapters.clear()


def _adapted_weight(layer: LoraLayer) -> Tensor:
    is_fused = isinstance(layer, ParamWrapper)
    parameter = layer.get_param() if is_fused else layer.get_base_layer().weight
    data: Tensor = parameter.data
    return data
