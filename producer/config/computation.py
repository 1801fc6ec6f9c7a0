"""Fields of the configuration: where the policy is computed, and the memory that it may take."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field


def _check_device(device: str) -> str:
    if re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", device) is None:
        # mps: its tensors have no float64, which draws are made with.
        message = f"{device!r} is no device that is supported; use auto, cpu, cuda or cuda:N"
        raise ValueError(message)
    return device


Device = Annotated[str, AfterValidator(_check_device)]


class ComputationFields(BaseModel):
    """Where the policy is computed, and the memory that it may take."""

    device: Device = Field(
        "auto",
        description=(
            "Where the policy runs: `cpu`, `cuda` or `cuda:N`. auto: the first GPU, else the CPU."
        ),
    )
    dtype: Literal["auto", "float32", "bfloat16"] = Field(
        "auto",
        description=(
            "Type of the policy's weights. auto: float32 on a CPU, as stored on a GPU. Adapter"
            " and optimiser are always float32."
        ),
    )
    cpu_threads: int | None = Field(
        None,
        ge=1,
        le=1024,
        description=(
            "On a CPU: threads per operation, for policies of more than 50 M weights; smaller"
            " ones use one. The last bits of results depend on it, so it is recorded and kept when"
            " the training continues elsewhere."
        ),
    )
    gradient_checkpointing: Literal["auto", "on", "off"] = Field(
        "auto",
        description=(
            "Recompute activations in the backward pass to save memory; the result is the same."
            " auto: if they would take more than half of the available memory."
        ),
    )
    screen_cache_bytes: int | None = Field(
        None,
        ge=0,
        lt=2**63,
        description="Size of the cache of screen features, in bytes.",
    )
    kv_cache_bytes: int | None = Field(
        None,
        ge=0,
        lt=2**63,
        description=(
            "Size of the KV caches of running episodes, in bytes. What exceeds it is recomputed"
            " at the next turn."
        ),
    )
