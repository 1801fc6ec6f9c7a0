"""Freed memory is reused. Each case runs in its own process, since the setting is permanent."""

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource
from producer.policy.torch_policy.memory import keep_freed_memory
if {keep}: assert keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(40_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(min(faults() for _ in range(5)))
"""
PAGES = 40_000_000 // 4096


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_a_block_of_40_mb_is_page_faulted_once_and_by_default_at_every_allocation() -> None:
    def smallest(*, keep: bool) -> int:
        done = subprocess.run(
            [sys.executable, "-c", FAULTS.format(keep=keep)],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        return int(done.stdout)

    assert smallest(keep=True) < PAGES // 10
    assert smallest(keep=False) > PAGES // 10
