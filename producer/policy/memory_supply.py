"""Memory that this process may still take: the machine's, within the limits of its cgroups.

A container's limit is its cgroup's, and the machine's own figures do not show it. Reads cgroup v2
and v1; the limits of all parents hold too.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

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
