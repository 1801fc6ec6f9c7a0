"""The device that computes a policy, and the dtype of its base's weights."""

from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from producer.errors import UsageError
from producer.policy.compute_settings import Dtype

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_GROUPED_MM_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Placement:
    """The device and the dtype of the weights."""

    device: torch.device
    dtype: torch.dtype | None
    """None: the dtype in which they are stored."""


def choose_placement(device: str = "auto", dtype: Dtype = "auto") -> Placement:
    """The configured device and dtype. Raises UsageError naming the devices that exist."""
    found = _choose_device(device)
    if dtype == "auto":
        return Placement(found, torch.float32 if found.type == "cpu" else None)
    if dtype == "bfloat16" and found.type == "cuda" and not torch.cuda.is_bf16_supported():
        message = f"dtype: {found} does not compute in bfloat16; use float32"
        raise UsageError(message)
    return Placement(found, _DTYPES[dtype])


def _choose_device(device: str) -> torch.device:
    num_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device == "auto":
        return torch.device("cuda" if num_gpus else "cpu")
    wanted = torch.device(device)
    if wanted.type == "cuda" and (wanted.index or 0) >= num_gpus:
        found = ["cpu", *(f"cuda:{index}" for index in range(num_gpus))]
        message = f"device: {device} is not on this machine, which has {', '.join(found)}"
        raise UsageError(message)
    return wanted


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on the device; the CPU does not wait for a copy to an accelerator."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def experts_implementation(text_config: Any, dtype: torch.dtype | None) -> str | None:
    """Implementation of fused experts for this text configuration; None: transformers' default.

    The default is torch's grouped_mm, which requires rows of a multiple of 16 bytes. `dtype` None
    means as stored, which may be 2 bytes per weight.
    """
    width = getattr(text_config, "moe_intermediate_size", None)
    if width is None:
        return None
    itemsize = 2 if dtype is None else dtype.itemsize
    rows_bytes = (width * itemsize, text_config.hidden_size * itemsize)
    return "eager" if any(row % _GROUPED_MM_BYTES for row in rows_bytes) else None
