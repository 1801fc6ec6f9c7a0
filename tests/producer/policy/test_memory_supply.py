"""What a cgroup leaves, in both versions, at every level."""

from pathlib import Path

import psutil
import pytest

from producer.policy.torch_policy.memory_check import MemorySupply, host_memory

MIB = 2**20


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "proc/self").mkdir(parents=True)
    return tmp_path / "proc"


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    return tmp_path / "sys"


def join(proc: Path, *lines: str) -> None:
    (proc / "self/cgroup").write_text("\n".join(lines) + "\n")


def limit_v2(folder: Path, limit: str, usage: int, inactive: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{usage}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {inactive}\nactive_file 7\n")


def limit_v1(folder: Path, limit: int, usage: int, inactive: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.limit_in_bytes").write_text(f"{limit}\n")
    (folder / "memory.usage_in_bytes").write_text(f"{usage}\n")
    (folder / "memory.stat").write_text(f"inactive_file 1\ntotal_inactive_file {inactive}\n")


def test_a_cgroup_leaves_its_limit_less_its_usage_and_cached_files_can_go(
    proc: Path, sys: Path
) -> None:
    join(proc, "0::/box")
    limit_v2(sys / "fs/cgroup/box", str(100 * MIB), usage=70 * MIB, inactive=20 * MIB)
    assert host_memory(proc, sys) == MemorySupply(50 * MIB, "the cgroup /box")


def test_the_smallest_of_a_cgroup_and_its_parents_holds(proc: Path, sys: Path) -> None:
    join(proc, "0::/pod/box")
    limit_v2(sys / "fs/cgroup/pod/box", str(100 * MIB), usage=0)
    limit_v2(sys / "fs/cgroup/pod", str(60 * MIB), usage=50 * MIB)
    assert host_memory(proc, sys) == MemorySupply(10 * MIB, "the cgroup /pod")


def test_a_container_that_sees_its_own_cgroup_as_the_root_has_its_limit(
    proc: Path, sys: Path
) -> None:
    join(proc, "0::/somewhere/on/the/host")
    limit_v2(sys / "fs/cgroup", str(3 * MIB), usage=MIB)
    assert host_memory(proc, sys) == MemorySupply(2 * MIB, "the cgroup /")


def test_version_1_names_its_files_differently(proc: Path, sys: Path) -> None:
    join(proc, "5:cpu,cpuacct:/box", "4:memory:/box", "0::/")
    limit_v1(sys / "fs/cgroup/memory/box", 100 * MIB, usage=70 * MIB, inactive=20 * MIB)
    assert host_memory(proc, sys) == MemorySupply(50 * MIB, "the cgroup /box")


def test_usage_above_the_limit_leaves_nothing(proc: Path, sys: Path) -> None:
    join(proc, "0::/box")
    limit_v2(sys / "fs/cgroup/box", str(MIB), usage=2 * MIB)
    assert host_memory(proc, sys).available_bytes == 0


@pytest.mark.parametrize("lines", [(), ("0::/box",), ("4:memory:/box", "0::/box")])
def test_without_a_limit_the_machine_s_memory_is_what_there_is(
    proc: Path, sys: Path, lines: tuple[str, ...]
) -> None:
    join(proc, *lines) if lines else None
    limit_v2(sys / "fs/cgroup/box", "max", usage=MIB)
    limit_v1(sys / "fs/cgroup/memory/box", 2**63 - 4096, usage=MIB)
    supply = host_memory(proc, sys)
    assert supply.where == "this machine"
    assert 0 < supply.available_bytes <= psutil.virtual_memory().total
