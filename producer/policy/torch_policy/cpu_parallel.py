"""Work on the processor side by side, a thread each.

Of small matrices two passes at once are faster than each on two threads.

Work that is divided alike however many lanes there are, and whose parts are summed in their order,
has the same bits on any number of them: an update and the warm-up do. Where a batch is divided by
the number of lanes (sampling, new screens) parts agree up to rounding.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import torch
from torch import Tensor, nn

Item = TypeVar("Item")
Result = TypeVar("Result")


def num_workers(device: torch.device) -> int:
    """How many times torch's own threads fit on this process's cores.

    1 on an accelerator, which has its own order of work.
    """
    if device.type != "cpu":
        return 1
    num_cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return max(1, num_cores // torch.get_num_threads())


def parallel_map(
    work: Callable[[Item], Result], items: Iterable[Item], device: torch.device
) -> Iterator[Result]:
    """`work` of every item, in the items' order, with the caller's grad mode.

    What `work` raises is raised here.

    With one lane each item is worked on when its result is asked for. `work` shares nothing that is
    written without a lock: gradients are returned, not accumulated.
    """
    waiting = list(items)
    workers = min(num_workers(device), len(waiting))
    if workers <= 1:
        yield from map(work, waiting)
        return
    with_grad = torch.is_grad_enabled()

    def in_worker(item: Item) -> Result:
        with torch.set_grad_enabled(with_grad):
            return work(item)

    with ThreadPoolExecutor(workers, thread_name_prefix="lane") as pool:
        yield from pool.map(in_worker, waiting)


def split_evenly(items: Sequence[Item], num_parts: int) -> list[Sequence[Item]]:
    """The items in order, in at most `num_parts` parts of about the same size, none empty."""
    bounds = [len(items) * part // num_parts for part in range(num_parts + 1)]
    return [items[start:end] for start, end in pairwise(bounds) if start < end]


def add_gradients(parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor | None]) -> None:
    """Onto what the parameters have so far; None: the loss does not depend on that one."""
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is not None:
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
