"""Memory of an update: checkpointing layers, splitting micro-batches that do not fit, peak usage.

With gradient checkpointing, layers keep only their inputs and are recomputed in the backward pass.
On a CPU the recomputation repeats the first pass exactly, so gradients have the same bits.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from producer.errors import CuaTrainError
from producer.policy.compute_settings import Switch
from producer.policy.torch_policy.cpu_parallel import num_workers
from producer.policy.torch_policy.memory_check import available_bytes, size_of_network
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.prefix_sharing import num_padded_tokens
from producer.policy.torch_policy.training_sequences import MicroBatch, token_rows

logger = logging.getLogger(__name__)
Result = TypeVar("Result")


@dataclass(slots=True)
class PassLimit:
    """Size limit for the passes of an update. Shrinks when the device runs out of memory."""

    max_padded_tokens: int | None = None
    """None: every size has fitted so far."""

    def divided(
        self, network: Network, compute: Callable[[MicroBatch], Result], micro_batch: MicroBatch
    ) -> list[Result]:
        """Apply `compute` to the batch, or to its parts in order if it does not fit as a whole.

        Raises CuaTrainError if a single sequence does not fit.
        """
        limit = self.max_padded_tokens
        halves = _halves(micro_batch)

        def size(part: MicroBatch) -> int:
            return num_padded_tokens(network, token_rows(part))

        if limit is None or not halves or size(micro_batch) <= limit:
            try:
                return [compute(micro_batch)]
            except torch.OutOfMemoryError as error:
                if not halves:
                    what = f"a sequence of {size(micro_batch):,} tokens"
                    raise out_of_memory(what, error) from error
            # Only here are the failed pass's tensors free: the exception referenced them.
            self._shrink(size(micro_batch), max(size(half) for half in halves))
        return [result for half in halves for result in self.divided(network, compute, half)]

    def _shrink(self, size: int, next_size: int) -> None:
        if self.max_padded_tokens is None:
            logger.warning(
                "out of memory: a micro-batch of %s tokens did not fit. The micro-batches of this"
                " update are halved until they fit, which takes longer and gives the same"
                " gradients up to rounding, except for LoRA dropout. A lower kv_cache_bytes or"
                " screen_cache_bytes leaves more memory",
                f"{size:,}",
            )
        self.max_padded_tokens = next_size
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _halves(micro_batch: MicroBatch) -> list[MicroBatch]:
    """Two halves of its rows, or of its only row's sequences; empty for a single sequence."""
    if len(micro_batch) > 1:
        middle = len(micro_batch) // 2
        return [micro_batch[:middle], micro_batch[middle:]]
    (row,) = micro_batch
    middle = len(row) // 2
    return [[row[:middle]], [row[middle:]]] if middle else []


def out_of_memory(what: str, error: torch.OutOfMemoryError) -> CuaTrainError:
    """The error for something that does not fit, naming the settings that help."""
    reason = str(error).splitlines()[0] if str(error) else "out of memory"
    return CuaTrainError(
        f"{what} does not fit into the device's memory ({reason}). The training can be continued"
        " by the same command on a device with more memory. A new training needs less with"
        " gradient_checkpointing on, dtype bfloat16, or a lower max_tokens, max_recent_turns,"
        " max_concurrent_rollouts or kv_cache_bytes"
    )


def take_peak_bytes(device: torch.device) -> int | None:
    """Peak memory of tensors on an accelerator since the last call; None on a CPU."""
    if device.type != "cuda":
        return None
    peak = torch.cuda.max_memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    return peak


def is_checkpointed(setting: Switch, network: Network, num_tokens: Sequence[int]) -> bool:
    """Whether an update with micro-batches of these sizes uses checkpointing.

    `auto`: if the activations of the largest micro-batches running concurrently would take more
    than half of the available memory.
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

    transformers checkpoints a layer only in training mode. Therefore only the layer's own flag is
    set, and its submodules stay in evaluation mode, without dropout. Outside updates, checkpointed
    layers would ignore the KV cache.
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
