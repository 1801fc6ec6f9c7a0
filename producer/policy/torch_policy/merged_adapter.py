"""Merges the adapter into the base weights while sampling.

One matrix product per linear layer instead of three.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from peft.tuners.lora import LoraLayer
from peft.tuners.lora.layer import ParamWrapper
from torch import Tensor

from producer.policy.torch_policy.network import Network

MAX_MERGED_WEIGHTS = 50_000_000
"""Adapted weights up to which merging pays: it keeps a copy of them, and in a larger network the
three products are bound by memory bandwidth anyway."""


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
