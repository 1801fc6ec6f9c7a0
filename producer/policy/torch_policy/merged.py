"""The adapter inside the weights while nothing is trained.

One matrix product per linear map instead of three and their sum.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from peft.tuners.lora import LoraLayer

from producer.policy.torch_policy.network import Network

MERGED_UP_TO = 50_000_000
"""Weights of the adapted maps. The copy that is kept of them is small up to here; of a larger
network it would not be, and there the three products are limited by memory anyway."""


@contextmanager
def adapter_merged(network: Network) -> Iterator[None]:
    """While open the adapted maps hold base + adapter (log-probs differ by rounding, about 1e-6).

    Afterwards the base's bits are as before.

    Only where that is exact enough and cheap: float32, up to `MERGED_UP_TO` weights. Elsewhere
    nothing changes.
    """
    layers = [module for module in network.adapted.modules() if isinstance(module, LoraLayer)]
    weights = [layer.get_base_layer().weight.data for layer in layers]
    if (
        network.base.dtype != torch.float32
        or sum(weight.numel() for weight in weights) > MERGED_UP_TO
    ):
        yield
        return
    kept = [weight.clone() for weight in weights]
    network.adapted.merge_adapter()
    try:
        yield
    finally:
        # peft's own unmerge subtracts what it added, and leaves the base changed in its last bits.
        for layer, weight, before in zip(layers, weights, kept, strict=True):
            weight.copy_(before)
            layer.merged_adapters.clear()
