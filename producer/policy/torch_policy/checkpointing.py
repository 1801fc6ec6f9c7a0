"""Gradient checkpointing: layers keep their inputs alone and compute again in the backward pass.

The second computation is the first one again, so that gradients have the same bits on a processor.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from producer.policy.compute_settings import Switch
from producer.policy.torch_policy.cpu_parallel import num_workers
from producer.policy.torch_policy.memory_check import available_bytes, size_of_network
from producer.policy.torch_policy.network import Network


def is_checkpointed(setting: Switch, network: Network, num_tokens: Sequence[int]) -> bool:
    """Whether an update with micro-batches of these sizes is checkpointed.

    auto: when the activations of the largest that run at a time would take more than half of the
    memory available.
    """
    if setting != "auto":
        return setting == "on"
    device = network.device
    largest = sorted(num_tokens)[-num_workers(device) :]
    size = size_of_network(network.base.config, network.base.dtype)
    return size.activation_bytes(sum(largest), checkpointed=False) > available_bytes(device) // 2


@contextmanager
def checkpointed_layers(network: nn.Module, *, enabled: bool) -> Iterator[None]:
    """Inside the context the network's layers are checkpointed; nothing else changes.

    transformers checkpoints a layer in training mode alone. Only the layer's own flag is set: what
    is inside it stays in evaluation mode, without dropout. Outside updates checkpointed layers
    would ignore the KV cache.
    """
    layers = [
        module for module in network.modules() if isinstance(module, GradientCheckpointingLayer)
    ]
    if not enabled:
        yield
        return
    before = [(layer.training, layer.gradient_checkpointing) for layer in layers]
    for layer in layers:
        layer.training = True
        layer.gradient_checkpointing = True
        layer._gradient_checkpointing_func = partial(
            checkpoint, use_reentrant=False, preserve_rng_state=False
        )
    try:
        yield
    finally:
        for layer, (training, checkpointing) in zip(layers, before, strict=True):
            layer.training = training
            layer.gradient_checkpointing = checkpointing
