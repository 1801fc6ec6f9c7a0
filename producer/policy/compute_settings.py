"""Where and in what precision a policy is computed, and the memory that it may take."""

from dataclasses import dataclass
from typing import Final, Literal

Dtype = Literal["auto", "float32", "bfloat16"]
Switch = Literal["auto", "on", "off"]


@dataclass(frozen=True, slots=True)
class ComputeSettings:
    """The configuration's fields of these names."""

    device: str = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:N`; auto: the first GPU, or the processor without one."""
    dtype: Dtype = "auto"
    """Of the base's weights; auto: float32 on a processor, as stored on a GPU. The adapter and its
    optimiser are float32."""
    cpu_threads: int | None = None
    """Of one operation of a large network; None: torch's choice."""
    gradient_checkpointing: Switch = "auto"
    """auto: where an update's activations would take more than half of the memory available."""
    screen_cache_bytes: int | None = None
    """Of the screens' features that are kept; None: 2 GiB."""
    kv_cache_bytes: int | None = None
    """Of the running episodes' KV caches; None: all are kept."""


DEFAULT_COMPUTE: Final = ComputeSettings()
