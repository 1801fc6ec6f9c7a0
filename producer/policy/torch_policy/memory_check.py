"""Refuses a policy that cannot fit, by arithmetic, before reading any of its weights.

Reads only `config.json` and the headers of the safetensors files; if the policy is not on this
machine, the hub serves both. If its files cannot be read, loading reports the problem.
"""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import psutil
import torch
from transformers import AutoConfig, AutoImageProcessor

from producer.errors import CuaTrainError, UsageError
from producer.policy.compute_settings import PolicySettings
from producer.policy.memory_demand import (
    NetworkSize,
    RunExtent,
    Term,
    Workload,
    format_bytes,
    memory_demand,
    pass_tokens,
    total_bytes,
)
from producer.policy.torch_policy.architectures import CHOICES, architecture_of
from producer.policy.torch_policy.cpu_parallel import choose_threads, num_workers
from producer.policy.torch_policy.hub import (
    check_hub_has,
    download_settings,
    hub_shapes,
    is_path,
    policy_folder,
)
from producer.policy.torch_policy.placement import Placement
from producer.policy.torch_policy.screen_encoder import num_screen_tokens
from producer.policy.torch_policy.stored_weights import read_shapes

logger = logging.getLogger(__name__)

_ADAPTED = re.compile(r"\blayers\.\d+\..*(proj|gate_up_proj|down_proj)(\.weight)?$")
_TOWER = re.compile(r"\bvisual\.")
_MATRIX_NDIM = 2

_UNLIMITED_V1: Final = 2**62
"""For no limit, cgroup v1 reports the largest multiple of a page below 2^63."""


@dataclass(frozen=True, slots=True)
class MemorySupply:
    """Available memory of one device."""

    available_bytes: int
    where: str
    """What imposes the limit, for use in a sentence: `this machine`, `the cgroup /box`."""


_CGROUP_FILES: Final = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Files of both cgroup versions: limit, usage, and the memory.stat line with the page cache that
the kernel frees first."""


def host_memory(proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> MemorySupply:
    """The smallest of the machine's available memory and that of this process's cgroups."""
    supplies = [MemorySupply(psutil.virtual_memory().available, "this machine")]
    supplies += _cgroup_supplies(proc / "self" / "cgroup", sys / "fs" / "cgroup")
    return min(supplies, key=lambda supply: supply.available_bytes)


def _cgroup_supplies(membership: Path, root: Path) -> list[MemorySupply]:
    """Available memory of each cgroup with a limit: the process's own and its parents."""
    supplies = []
    for line in _text(membership).splitlines():  # none: another system
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        both = (root / "unified").is_dir()
        mount = root / "memory" if controllers else root / "unified" if both else root
        group = mount / path.strip("/")
        # In a container the own group is mounted as the root, while `path` may name it as on the
        # host.
        for folder in [group, *group.parents][: len(group.parts) - len(mount.parts) + 1]:
            free = _free_bytes(folder)
            if free is not None:
                name = f"the cgroup /{folder.relative_to(mount) if folder != mount else ''}"
                supplies.append(MemorySupply(max(0, free), name))
    return supplies


def _free_bytes(folder: Path) -> int | None:
    """Free memory of the cgroup, including reclaimable page cache; None without a limit."""
    for limit, usage, reclaimable in _CGROUP_FILES:
        most, used = _text(folder / limit).strip(), _text(folder / usage).strip()
        if most.isdigit() and used.isdigit() and int(most) < _UNLIMITED_V1:
            stat = dict(line.split() for line in _text(folder / "memory.stat").splitlines())
            return int(most) - int(used) + int(stat.get(reclaimable, 0))
    return None


def _text(path: Path) -> str:
    """Contents of the file; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def check_memory(
    settings: PolicySettings, extent: RunExtent, placement: Placement, num_adapters: int = 1
) -> int | None:
    """Peak bytes the run needs on the device; None if loading will report what is wrong.

    `num_adapters`: number of adapters of the settings' rank. Raises UsageError with the terms of
    the sum if the device has too little memory.
    """
    name, compute = settings.folder, settings.compute
    try:
        folder, shapes = _settings_and_shapes(name)
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        dtype = placement.dtype or config.dtype or torch.float32
        size = size_of_network(
            *(config, dtype, shapes, settings.lora_rank * num_adapters, settings.target_modules),
            trains_all=settings.trains_all,
        )
        screen_tokens = _screen_tokens(folder, config, settings.screen_px)
    except (CuaTrainError, OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    work = Workload(
        extent=extent,
        settings=settings,
        screen_tokens=screen_tokens,
        num_lanes=num_workers(
            placement.device,
            choose_threads(size.num_weights, placement.device, compute.cpu_threads),
        ),
        pass_tokens=pass_tokens(size, placement.device.type),
    )
    demand = memory_demand(size, work, checkpointed=compute.gradient_checkpointing != "off")
    if placement.device.type != "cpu":
        # transformers first reads the weights into the machine's memory.
        weights = Term("weights, on their way to the device", size.num_weights * size.weight_bytes)
        _refuse_excess(name, "cpu", [weights], host_memory())
    _refuse_excess(name, str(placement.device), demand, _supply(placement.device))
    return total_bytes(demand)


def size_of_policy(
    name: str, lora_rank: int | None, dtype: torch.dtype | None
) -> NetworkSize | None:
    """Size of a policy with an adapter, from its files; None: loading reports what is wrong.

    `lora_rank` None: all weights are trained. `dtype` None: the type that the files use.
    """
    try:
        folder, shapes = _settings_and_shapes(name)
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        return size_of_network(
            *(config, dtype or config.dtype or torch.float32, shapes, lora_rank or 0),
            trains_all=lora_rank is None,
        )
    except (CuaTrainError, OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def check_fitting_memory(name: str, device: torch.device, demand: list[Term]) -> None:
    """Raises UsageError with the terms of `demand` if a supervised training does not fit."""
    advice = (
        "lower max_length, set gradient_checkpointing to true or train_type to lora, or choose a"
        " smaller model_name"
    )
    _refuse_excess(name, str(device), demand, _supply(device), advice)


def _settings_and_shapes(name: str) -> tuple[Path, dict[str, tuple[int, ...]]]:
    """The folder with `config.json`, and each tensor's shape. Raises OSError, as loading does."""
    try:
        folder = policy_folder(name, local_files_only=True)
        return folder, read_shapes(folder)
    except OSError:
        if Path(name).is_dir() or is_path(name):
            raise
    check_hub_has(name)
    folder = download_settings(name)
    # No need to ask for the size of an untrainable policy: loading refuses it.
    architecture_of(name, json.loads((folder / "config.json").read_text()))
    try:
        return folder, hub_shapes(name)
    except OSError as error:
        logger.warning(
            "policy %r: how large it is is not known before its weights are downloaded, because the"
            " hub does not say it (%s)",
            *(name, error),
        )
    folder = policy_folder(name, local_files_only=False)
    return folder, read_shapes(folder)


def available_bytes(device: torch.device) -> int:
    """Memory of the device that this process can still allocate."""
    return _supply(device).available_bytes


def size_of_network(
    config: Any,
    dtype: torch.dtype,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    lora_rank: int = 0,
    target_modules: Sequence[str] | None = None,
    *,
    trains_all: bool = False,
) -> NetworkSize:
    """The dimensions in a transformers configuration; without `shapes` no weights are counted.

    `trains_all`: every weight outside the vision tower is trained, without an adapter.

    `target_modules`: as in `lora_targets`; if one is a regular expression, every layer counts.
    """
    text = config.get_text_config()
    head_dim = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    experts = getattr(text, "num_experts_per_tok", 0) * getattr(text, "moe_intermediate_size", 0)
    vision = getattr(config, "vision_config", None)
    shapes = shapes or {}
    return NetworkSize(
        num_weights=sum(map(prod, shapes.values())),
        weight_bytes=dtype.itemsize,
        num_trained=sum(prod(shape) for name, shape in shapes.items() if not _TOWER.search(name))
        if trains_all
        else sum(
            lora_rank * prod(shape[:-_MATRIX_NDIM]) * sum(shape[-_MATRIX_NDIM:])
            for name, shape in shapes.items()
            if len(shape) >= _MATRIX_NDIM and _is_adapted(name, target_modules)
        ),
        trains_all=trains_all,
        layers=text.num_hidden_layers,
        hidden=text.hidden_size,
        feed_forward=experts or text.intermediate_size,
        query=text.num_attention_heads * head_dim,
        key_value=text.num_key_value_heads * head_dim,
        vocabulary=text.vocab_size,
        deepstack=len(getattr(vision, "deepstack_visual_indexes", None) or ()),
    )


def _is_adapted(name: str, target_modules: Sequence[str] | None) -> bool:
    if not _ADAPTED.search(name) or _TOWER.search(name):
        return False
    return any(_may_match(entry, name) for entry in target_modules or ("all",))


def _may_match(entry: str, name: str) -> bool:
    """Whether `entry` may match. Regular expressions match loaded names, which files may lack."""
    if entry in CHOICES:
        is_expert = entry != "attention" and ".mlp.experts." in name
        return is_expert or re.search(CHOICES[entry], name) is not None
    return not entry.isidentifier() or name.removesuffix(".weight").endswith(f".{entry}")


def _screen_tokens(folder: Path, config: Any, screen_px: tuple[int, int] | None) -> int:
    if getattr(config, "vision_config", None) is None or screen_px is None:
        return 0
    processor = AutoImageProcessor.from_pretrained(folder, local_files_only=True)
    return num_screen_tokens(processor, screen_px)


def _supply(device: torch.device) -> MemorySupply:
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        # torch keeps freed memory for its next tensors.
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return MemorySupply(free + kept, str(device))
    return host_memory()


_ADVICE: Final = (
    "lower max_turns, max_tokens, max_concurrent_rollouts or kv_cache_bytes (whose excess is"
    " computed again), set gradient_checkpointing to auto or dtype to bfloat16, or choose a smaller"
    " model_name"
)
"""Advice for a run."""


def _refuse_excess(
    name: str, device: str, demand: list[Term], supply: MemorySupply, advice: str = _ADVICE
) -> None:
    if total_bytes(demand) <= supply.available_bytes:
        return
    lines = [f"  {format_bytes(term.num_bytes):>12}  {term.what}" for term in demand]
    message = "\n".join(
        [
            f"policy {name!r} does not fit into memory: it needs"
            f" {format_bytes(total_bytes(demand))} and {supply.where} has"
            f" {format_bytes(supply.available_bytes)} left on {device}:",
            *lines,
            advice,
        ]
    )
    raise UsageError(message)
