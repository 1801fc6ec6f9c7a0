"""Threads of a processor: passes in parallel, and the threads of one operation.

For small matrices two passes on a thread each are faster than one pass after the other on two.
Results are bit-identical for any number of workers, because no split depends on that number and
partial results are added in order.

An operation has one thread, but for a large network, which has torch's. `open_base`, which loads
every network, takes a process down to one; `use_threads` gives a large network more. So no stage
computes with a number that follows from the machine and is not recorded.

Threads of an operation wait for each other after each one: on a busy machine a network of 0.25 M
weights took five to six times as long on two threads as on one, and its lanes use the cores anyway.
A network this small has the same bits on any machine; a larger one has those of its number of
threads, which is a setting: recorded when a training begins (`cpu_threads`).
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Final, TypeVar

import torch
from torch import Tensor, nn

logger = logging.getLogger(__name__)

SMALL_WEIGHTS: Final = 50_000_000
"""A larger network reads its weights once for all rows of a batch, on all cores."""
_TORCHS: Final = torch.get_num_threads()
"""What torch chose: the cores, or OMP_NUM_THREADS."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def num_workers(device: torch.device, threads: int | None = None) -> int:
    """Cores of this process divided by threads per operation; 1 on an accelerator.

    `threads` None: those that torch uses now.
    """
    if device.type != "cpu":
        return 1
    return max(1, num_cores() // (threads or torch.get_num_threads()))


def parallel_map(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    device: torch.device,
    max_workers: int | None = None,
) -> Iterator[Result]:
    """`map(work, items)` on `num_workers(device)` threads, under the caller's grad mode.

    At most `max_workers`, for work that may not run in parallel with itself.

    Re-raises what `work` raises. With one worker it is lazy. `work` must not write shared state
    without a lock: it returns gradients instead of accumulating them.
    """
    pending = list(items)
    workers = min(num_workers(device), len(pending), max_workers or len(pending))
    if workers <= 1:
        yield from map(work, pending)
        return
    with_grad = torch.is_grad_enabled()

    def in_worker(item: Item) -> Result:
        with torch.set_grad_enabled(with_grad):
            return work(item)

    with ThreadPoolExecutor(workers, thread_name_prefix="cpu-parallel") as pool:
        yield from pool.map(in_worker, pending)


def add_gradients(parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor | None]) -> None:
    """Add to the parameters' `.grad`; None where the loss does not depend on a parameter."""
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is not None:
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient


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
