"""Data parallelism over CPU threads.

For small matrices two passes on a thread each are faster than one pass after the other on two.
Results are bit-identical for any number of workers, because no split depends on that number and
partial results are added in order. The threads of one operation are torch's, and a policy that is
computed with several of them may round differently on another number.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import torch
from torch import Tensor, nn

from producer.policy.torch_policy.threads import num_cores

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


def split_evenly(items: Sequence[Item], num_parts: int) -> list[Sequence[Item]]:
    """The items in order, in at most `num_parts` non-empty parts; sizes differ by at most one."""
    bounds = [len(items) * part // num_parts for part in range(num_parts + 1)]
    return [items[start:end] for start, end in pairwise(bounds) if start < end]


def add_gradients(parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor | None]) -> None:
    """Add to the parameters' `.grad`; None where the loss does not depend on a parameter."""
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is not None:
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
