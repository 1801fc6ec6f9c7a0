"""Refuses a policy that cannot fit, by arithmetic, before any of its weights is read.

Reads `config.json` and the headers of the safetensors files alone; of a policy that is not on this
machine the hub serves both. One whose files cannot be read is left to loading.
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
from producer.policy.compute_settings import ComputeSettings
from producer.policy.memory_demand import (
    NetworkSize,
    RunExtent,
    Term,
    Workload,
    format_bytes,
    memory_demand,
    total_bytes,
)
from producer.policy.torch_policy.architectures import architecture_of
from producer.policy.torch_policy.cpu_parallel import num_workers
from producer.policy.torch_policy.hub import (
    check_hub_has,
    download_settings,
    hub_shapes,
    is_path,
    policy_folder,
)
from producer.policy.torch_policy.lora_targets import CHOICES
from producer.policy.torch_policy.placement import Placement
from producer.policy.torch_policy.screen_encoder import num_screen_tokens
from producer.policy.torch_policy.stored_weights import read_shapes
from producer.policy.torch_policy.threads import choose_threads

_UNLIMITED_V1: Final = 2**62
"""cgroup v1 writes the largest multiple of a page below 2^63 for no limit."""


@dataclass(frozen=True, slots=True)
class MemorySupply:
    """Memory of one device."""

    available_bytes: int
    where: str
    """What limits it, as a sentence names it: `this machine`, `the cgroup /box` ..."""


@dataclass(frozen=True, slots=True)
class _Version:
    """File names of one version of cgroups."""

    limit: str
    usage: str
    reclaimable: str
    """Line of memory.stat: page cache that the kernel frees first."""


_V1: Final = _Version("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2: Final = _Version("memory.max", "memory.current", "inactive_file")


def host_memory(proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> MemorySupply:
    """The smallest of what the machine has and what each cgroup of this process leaves."""
    supplies = [MemorySupply(psutil.virtual_memory().available, "this machine")]
    supplies += _cgroup_supplies(proc / "self" / "cgroup", sys / "fs" / "cgroup")
    return min(supplies, key=lambda supply: supply.available_bytes)


def _cgroup_supplies(membership: Path, root: Path) -> list[MemorySupply]:
    """Of each cgroup with a limit, the process's own and its parents."""
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []  # no cgroups: another system
    supplies = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            supplies += _limits(_mounted(root, _V2), path, _V2)
        elif "memory" in controllers.split(","):
            supplies += _limits(_mounted(root / "memory", _V1), path, _V1)
    return supplies


def _mounted(root: Path, version: _Version) -> Path:
    """Where the hierarchy is mounted; with both versions in use the second has a folder."""
    unified = root / "unified"
    return unified if version is _V2 and unified.is_dir() else root


def _limits(mount: Path, path: str, version: _Version) -> list[MemorySupply]:
    supplies = []
    group = mount / path.strip("/")
    # A container sees its own group as the root while `path` may name it as the host does.
    for folder in [group, *group.parents]:
        if folder == mount.parent:
            break
        limit = _read_number(folder / version.limit)
        usage = _read_number(folder / version.usage)
        if limit is None or usage is None or limit >= _UNLIMITED_V1:
            continue
        free = limit - usage + _reclaimable(folder / "memory.stat", version)
        name = f"the cgroup {'/' + str(folder.relative_to(mount)) if folder != mount else '/'}"
        supplies.append(MemorySupply(max(0, free), name))
    return supplies


def _read_number(path: Path) -> int | None:
    """None: no such file, or no limit (`max`)."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _reclaimable(path: Path, version: _Version) -> int:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    for line in lines:
        key, _, value = line.partition(" ")
        if key == version.reclaimable:
            return int(value)
    return 0


logger = logging.getLogger(__name__)

_ADAPTED = re.compile(r"\blayers\.\d+\..*(proj|gate_up_proj|down_proj)(\.weight)?$")
_TOWER = re.compile(r"\bvisual\.")
_MATRIX_NDIM = 2


def check_memory(
    name: str,
    lora_rank: int,
    compute: ComputeSettings,
    extent: RunExtent,
    placement: Placement,
    target_modules: Sequence[str] | None = None,
    *,
    trains_all: bool = False,
) -> None:
    """UsageError with the terms of the sum if the run cannot fit into the device's memory."""
    try:
        folder, shapes = _settings_and_shapes(name)
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        dtype = placement.dtype or config.dtype or torch.float32
        size = size_of_network(
            *(config, dtype, shapes, lora_rank, target_modules), trains_all=trains_all
        )
        screen_tokens = _screen_tokens(folder, config, extent)
    except (CuaTrainError, OSError, ValueError, TypeError, KeyError, AttributeError):
        return  # loading reports what is wrong with it
    work = Workload(
        extent=extent,
        screen_tokens=screen_tokens,
        num_lanes=num_workers(
            placement.device,
            choose_threads(size.num_weights, placement.device, compute.cpu_threads),
        ),
        screen_cache_bytes=compute.screen_cache_bytes,
        kv_cache_bytes=compute.kv_cache_bytes,
    )
    demands = [
        memory_demand(size, work, checkpointed=checkpointed)
        for checkpointed in (True, False)
        if compute.gradient_checkpointing in {"auto", "on" if checkpointed else "off"}
    ]
    if placement.device.type != "cpu":
        # transformers reads the weights into the machine's memory first.
        weights = Term("weights, on their way to the device", size.num_weights * size.weight_bytes)
        _refuse_excess(name, "cpu", [weights], host_memory())
    demand = min(demands, key=total_bytes)
    _refuse_excess(name, str(placement.device), demand, _supply(placement.device))


def _settings_and_shapes(name: str) -> tuple[Path, dict[str, tuple[int, ...]]]:
    """The folder with `config.json`, and the shape of every tensor; OSError as loading would."""
    try:
        folder = policy_folder(name, local_files_only=True)
        return folder, read_shapes(folder)
    except OSError:
        if Path(name).is_dir() or is_path(name):
            raise
    check_hub_has(name)
    folder = download_settings(name)
    # Not worth asking for the size of what cannot be trained: loading refuses it.
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
    """Memory of the device that this process may still take."""
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

    `target_modules`: as in `lora_targets`; where one is a regular expression, every layer counts.
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
    """A regular expression is for names of the loaded network, which files may not have."""
    if entry in CHOICES:
        is_expert = entry != "attention" and ".mlp.experts." in name
        return is_expert or re.search(CHOICES[entry], name) is not None
    return not entry.isidentifier() or name.removesuffix(".weight").endswith(f".{entry}")


def _screen_tokens(folder: Path, config: Any, extent: RunExtent) -> int:
    if getattr(config, "vision_config", None) is None or extent.screen_px is None:
        return 0
    processor = AutoImageProcessor.from_pretrained(folder, local_files_only=True)
    return num_screen_tokens(processor, extent.screen_px)


def _supply(device: torch.device) -> MemorySupply:
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return MemorySupply(free, str(device))
    return host_memory()


def _refuse_excess(name: str, device: str, demand: list[Term], supply: MemorySupply) -> None:
    if total_bytes(demand) <= supply.available_bytes:
        return
    lines = [f"  {format_bytes(term.num_bytes):>12}  {term.what}" for term in demand]
    message = "\n".join(
        [
            f"policy {name!r} does not fit into memory: it needs"
            f" {format_bytes(total_bytes(demand))} and {supply.where} has"
            f" {format_bytes(supply.available_bytes)} left on {device}:",
            *lines,
            "lower max_turns, max_tokens, max_concurrent_rollouts or kv_cache_bytes (whose excess"
            " is computed again), set gradient_checkpointing to auto or dtype to bfloat16, or"
            " choose a smaller model_name",
        ]
    )
    raise UsageError(message)
