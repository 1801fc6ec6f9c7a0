"""Threads of one operation on a processor: one, but for a large network, which has torch's.

`open_base`, which loads every network, takes a process down to one; `use_threads` gives a large
network more. So no stage computes with a number that follows from the machine and is not recorded.

Threads of an operation wait for each other after each one: on a busy machine a network of 0.25 M
weights took five to six times as long on two threads as on one, and its lanes (`cpu_parallel`) use
the cores anyway. A network this small has the same bits on any machine; a larger one has those of
its number of threads, which is a setting: recorded when a training begins (`cpu_threads`).
"""

import logging
import os
from functools import lru_cache
from typing import Final

import torch

logger = logging.getLogger(__name__)

SMALL_WEIGHTS: Final = 50_000_000
"""A larger network reads its weights once for all rows of a batch, on all cores."""
_TORCHS: Final = torch.get_num_threads()
"""What torch chose: the cores, or OMP_NUM_THREADS."""


@lru_cache(maxsize=1)
def compute_on_one_thread() -> None:
    """From now on, in the whole process. Only the first call does anything."""
    torch.set_num_threads(1)


def machine_threads() -> int:
    """What torch chose on this machine."""
    return _TORCHS


def choose_threads(num_weights: int, device: torch.device, given: int | None = None) -> int:
    """Threads of one operation of a network of this size; `given`: of a large one."""
    if device.type == "cpu" and num_weights <= SMALL_WEIGHTS:
        return 1
    return given or _TORCHS


def use_threads(
    name: str, num_weights: int, device: torch.device, given: int | None = None
) -> None:
    """Compute with `choose_threads` from now on, in the whole process."""
    compute_on_one_thread()
    threads = choose_threads(num_weights, device, given)
    torch.set_num_threads(threads)
    if device.type != "cpu" or num_weights <= SMALL_WEIGHTS:
        return
    logger.info(
        "policy %r is computed with %d threads per operation: another number of them"
        " (cpu_threads) may round differently",
        *(name, threads),
    )
    if threads > num_cores():
        logger.warning(
            "cpu_threads is %d and this machine has %d cores: the bits are those of %d threads, and"
            " each step takes longer",
            *(threads, num_cores(), threads),
        )


def num_cores() -> int:
    """Cores of this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
