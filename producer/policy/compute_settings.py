"""How a policy is opened in this process: its adapter, its format, and where it is computed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from producer.codecs.codec import Format

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


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """A policy, with a fresh adapter or a saved one."""

    folder: str
    """Or a hub id."""
    lora_rank: int
    seed: int = 0
    """Initialises a fresh adapter."""
    adapter: Path | None = None
    """Folder of a saved one; None: a fresh one."""
    lora_alpha: float | None = None
    """None: twice the rank."""
    lora_dropout: float = 0.0
    target_modules: tuple[str, ...] | None = None
    """None: every linear layer of the language model; of a saved adapter: those that it has."""
    trains_all: bool = False
    """All weights are trained, in float32, in place of an adapter."""
    renderer_name: str = "auto"
    """Name of the format of prompts and actions."""
    text_format: Format | None = None
    """Of an environment without a screen; None: `renderer_name` decides."""
    screen_px: tuple[int, int] | None = (1, 1)
    """Width and height of the environment's screen; None: it has none."""
    max_recent_turns: int | None = None
    """As in `prompts.next_anchor`."""
    compute: ComputeSettings = DEFAULT_COMPUTE
