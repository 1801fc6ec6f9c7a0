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
            "Where the policy is computed: `cpu`, `cuda` or `cuda:N`; auto: the first GPU, or the"
            " processor without one."
        ),
    )
    dtype: Literal["auto", "float32", "bfloat16"] = Field(
        "auto",
        description=(
            "Of the policy's weights; auto: float32 on a processor, as stored on a GPU. Adapter and"
            " optimiser are float32 always."
        ),
    )
    cpu_threads: int | None = Field(
        None,
        ge=1,
        le=1024,
        description=(
            "On a processor: threads of one operation of a policy of more than 50 M weights, whose"
            " last bits follow from their number; a smaller one has one. Without it as many as the"
            " machine that begins the training chooses (its cores, or OMP_NUM_THREADS); recorded,"
            " and the same when it continues elsewhere."
        ),
    )
    gradient_checkpointing: Literal["auto", "on", "off"] = Field(
        "auto",
        description=(
            "Compute activations again in the backward pass instead of keeping them; auto: when"
            " they would take more than half of the memory available. The result is the same."
        ),
    )
    screen_cache_bytes: int | None = Field(
        None,
        ge=0,
        lt=2**63,
        description="Features of screens that are kept, in bytes; without it 2 GiB.",
    )
    kv_cache_bytes: int | None = Field(
        None,
        ge=0,
        lt=2**63,
        description=(
            "KV caches of running episodes that are kept, in bytes; those above are computed again"
            " at their next turn. Without it all are kept."
        ),
    )
