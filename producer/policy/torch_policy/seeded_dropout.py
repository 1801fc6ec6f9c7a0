"""Dropout of LoRA adapters, drawn from a seed that the pass provides.

torch's own dropout draws from one generator for all threads, so the masks of parallel passes would
depend on their timing. Here a mask depends only on the pass's seed, the module's number and the
input's shape. It has the same bits on any number of cores, when a layer is recomputed (gradient
checkpointing), and after a resume. Without a seed (sampling, measuring) nothing is dropped.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import torch
from peft import PeftModel
from peft.tuners.lora.layer import LoraLayer, ParamWrapper
from torch import Tensor, nn

from producer.errors import UsageError
from producer.seeds import derived_seed


class _Seed(threading.local):
    """Seed of the pass on this thread; None: nothing is dropped."""

    value: int | None = None


_ON_THREAD: Final = _Seed()
_LATEST: Final[list[int | None]] = [None]
"""Seed of the only pass on an accelerator, whose backward pass runs on torch's own threads."""


@contextmanager
def dropout_drawn_from(seed: int | None) -> Iterator[None]:
    """Inside the context, this thread's passes draw dropout from `seed`; None: no dropout.

    It must enclose the backward pass, which may recompute layers.
    """
    before, latest = _ON_THREAD.value, _LATEST[0]
    _ON_THREAD.value = _LATEST[0] = seed
    try:
        yield
    finally:
        _ON_THREAD.value, _LATEST[0] = before, latest


class SeededDropout(nn.Module):
    """Sets values to 0 with probability `p` and scales the others by 1 / (1 - p)."""

    def __init__(self, p: float, number: int) -> None:
        """`number` identifies the module in its network; each module draws its own masks."""
        super().__init__()
        self.p = p
        self.number = number

    def forward(self, values: Tensor) -> Tensor:
        """Apply dropout; returns `values` unchanged outside `dropout_drawn_from`."""
        seed = _ON_THREAD.value if values.device.type == "cpu" else _LATEST[0]
        if seed is None:
            return values
        generator = torch.Generator(values.device)
        generator.manual_seed(derived_seed(seed, self.number))
        kept = torch.rand(values.shape, generator=generator, device=values.device) >= self.p
        return values * kept / (1 - self.p)


def seed_dropout(adapted: PeftModel, p: float) -> None:
    """Let every adapted layer drop its adapter's input with probability `p`.

    Raises UsageError for fused experts, whose adapters do not support dropout.
    """
    if p == 0:
        return
    layers = [module for module in adapted.modules() if isinstance(module, LoraLayer)]
    if any(isinstance(layer, ParamWrapper) for layer in layers):
        message = (
            "lora_dropout: adapters of fused experts have no dropout; set it to 0, or choose"
            " target_modules attention"
        )
        raise UsageError(message)
    for config in adapted.peft_config.values():
        config.lora_dropout = p
    for number, layer in enumerate(layers):
        for name in list(layer.lora_dropout):
            layer.lora_dropout[name] = SeededDropout(p, number)
