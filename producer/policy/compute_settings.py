"""How a policy is opened in this process: its adapter, its format, and where it is computed."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from producer.algorithms.settings import SettingsGroup
from producer.codecs.codec import Format

Dtype = Literal["auto", "float32", "bfloat16"]
Switch = Literal["auto", "on", "off"]


def _check_device(device: str) -> str:
    if re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", device) is None:
        # mps: its tensors have no float64, which draws are made with.
        message = f"unsupported device {device!r}; use auto, cpu, cuda or cuda:N"
        raise ValueError(message)
    return device


Device = Annotated[str, AfterValidator(_check_device)]


class ComputeSettings(SettingsGroup):
    """Where the policy is computed, and the memory that it may take."""

    device: Device = "auto"
    """Where the policy runs: `cpu`, `cuda` or `cuda:N`. auto: the first GPU, else the CPU."""
    dtype: Dtype = "auto"
    """Type of the policy's weights. auto: float32 on a CPU, as stored on a GPU. Adapter and
    optimiser are always float32."""
    cpu_threads: int | None = Field(None, ge=1, le=1024)
    """On a CPU: threads per operation, for policies of more than 50 M weights; smaller ones use
    one. The last bits of results depend on it, so it is recorded and kept when the training
    continues elsewhere."""
    gradient_checkpointing: Switch = "auto"
    """Recompute activations in the backward pass to save memory; the result is the same. auto: if
    they would take more than half of the available memory."""
    screen_cache_bytes: int | None = Field(None, ge=0, lt=2**63)
    """Size of the cache of screen features, in bytes."""
    kv_cache_bytes: int | None = Field(None, ge=0, lt=2**63)
    """Size of the KV caches of running episodes, in bytes. What exceeds it is recomputed at the
    next turn."""


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
    official_renderer: str = "qwen_mobile"
    """What `auto` is for policies other than the demo policy."""
    text_format: Format | None = None
    """Of an environment without a screen; None: `renderer_name` decides."""
    screen_px: tuple[int, int] | None = (1, 1)
    """Width and height of the environment's screen; None: it has none."""
    max_recent_turns: int | None = None
    """As in `prompts.next_anchor`."""
    compute: ComputeSettings = DEFAULT_COMPUTE
