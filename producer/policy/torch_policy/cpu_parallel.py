"""CPU threads: parallel passes, and the number of threads per operation.

For small matrices, two passes on one thread each are faster than two successive passes on two
threads. Results are bit-identical for any number of workers, because no split depends on that
number and partial results are added in order.

An operation uses one thread, except in a large network, where it uses as many as torch chose.
`open_base`, which loads every network, reduces the process to one thread; `use_threads` raises it
for a large network. No stage therefore computes with a thread count that depends on the machine and
is not recorded.

Threads of an operation wait for each other at its end: on a busy machine a network of 0.25 M
weights took five to six times as long with two threads as with one, and parallel passes use the
cores anyway. A network this small gives the same bits on any machine; the bits of a larger one
depend on its thread count, a setting that is recorded when a training begins (`cpu_threads`).
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
"""Thread count that torch chose: the number of cores, or OMP_NUM_THREADS."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def num_workers(device: torch.device, threads: int | None = None) -> int:
    """Cores of this process divided by threads per operation; 1 on an accelerator.

    `threads` None means torch's current setting.
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

    `max_workers` limits the number of threads, for work that may not run in parallel with itself.

    Re-raises what `work` raises. Lazy with one worker. `work` must not write shared state without a
    lock: it returns gradients instead of accumulating them.
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
    """Add to the parameters' `.grad`. None: the loss does not depend on that parameter."""
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is not None:
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient


@lru_cache(maxsize=1)
def compute_on_one_thread() -> None:
    """Use one thread for the whole process from now on. Only the first call has an effect."""
    torch.set_num_threads(1)


def machine_threads() -> int:
    """Number of threads that torch chose on this machine."""
    return _TORCHS


def choose_threads(num_weights: int, device: torch.device, given: int | None = None) -> int:
    """Threads per operation for a network of this size; `given` applies to a large network."""
    if device.type == "cpu" and num_weights <= SMALL_WEIGHTS:
        return 1
    return given or _TORCHS


def use_threads(
    name: str, num_weights: int, device: torch.device, given: int | None = None
) -> None:
    """Use `choose_threads` for the whole process from now on."""
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
    """Number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
