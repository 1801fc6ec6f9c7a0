"""Several processes that learn together, started by torchrun: data parallelism of updates.

Rank 0 trains: it samples, records and saves. The other ranks hold the same network and compute the
gradients of their share of each update's sequences. All ranks then take the same optimiser step
with the sum, so that their weights stay equal.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

import torch
import torch.distributed as dist
from torch import nn

from producer.algorithms.settings import UpdateSettings
from producer.errors import CuaTrainError
from producer.policy.learner import Learner, Trajectory

logger = logging.getLogger(__name__)

TIMEOUT: Final = timedelta(days=2)
"""Long, because the other ranks wait while rank 0 collects rollouts; a dead rank is noticed at
once."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class State:
    """Files of rank 0's current training state."""

    files: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Update:
    """One update of the policy."""

    trajectories: Sequence[Trajectory]
    settings: UpdateSettings


class Ranks:
    """The processes of torchrun. Every method raises CuaTrainError if one of them has died."""

    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()

    def share(self, items: Sequence[Item]) -> list[Item]:
        """This rank's share of the items."""
        return list(items[self.rank :: self.size])

    def joined(
        self, compute: Callable[[Sequence[Item]], Sequence[Result]], items: Sequence[Item]
    ) -> list[Result]:
        """`compute(items)`, divided among the ranks; one result per item, in order."""
        parts = self.gather(list(compute(self.share(items))))
        return [parts[row % self.size][row // self.size] for row in range(len(items))]

    def send(self, message: object) -> None:
        """Send a message from rank 0 to the others, which `receive` it."""
        self._collective(lambda: dist.broadcast_object_list([message], src=0))

    def receive(self) -> object:
        """The next message from rank 0."""
        box: list[object] = [None]
        self._collective(lambda: dist.broadcast_object_list(box, src=0))
        return box[0]

    def gather(self, value: Result) -> list[Result]:
        """Every rank's value, on every rank."""
        values: list[Any] = [None] * self.size
        self._collective(lambda: dist.all_gather_object(values, value))
        return values

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace each `.grad` by its sum over the ranks; None if no rank has a gradient."""
        has_one = torch.tensor([float(item.grad is not None) for item in parameters])
        gradients = [
            (torch.zeros_like(item) if item.grad is None else item.grad).detach().float().flatten()
            for item in parameters
        ]
        flat = torch.cat([has_one, *(gradient.cpu() for gradient in gradients)])
        self._collective(lambda: dist.all_reduce(flat))
        sums = torch.split(flat, [len(has_one), *(len(gradient) for gradient in gradients)])
        for parameter, num, total in zip(parameters, sums[0].tolist(), sums[1:], strict=True):
            summed = total.view_as(parameter).to(parameter.device, parameter.dtype)
            parameter.grad = summed if num else None

    def _collective(self, act: Callable[[], object]) -> None:
        try:
            act()
        except (RuntimeError, dist.DistBackendError) as error:
            message = (
                f"a process of torchrun has ended ({str(error).splitlines()[0]}); start all of them"
                " again, and the training continues"
            )
            raise CuaTrainError(message) from error


def current_ranks() -> Ranks | None:
    """The ranks that `join` joined; None if this process learns alone."""
    return Ranks() if dist.is_available() and dist.is_initialized() else None


def join(local_rank: int) -> None:
    """Join the processes that torchrun's environment names. Returns when all have joined."""
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank)
    dist.init_process_group("gloo", timeout=TIMEOUT)


def leave() -> None:
    """End the group; rank 0 tells the others, whose `follow` then returns."""
    ranks = current_ranks()
    if ranks is None:
        return
    try:
        if ranks.rank == 0:
            ranks.send(None)
        dist.destroy_process_group()
    except (CuaTrainError, RuntimeError) as error:
        logger.warning("%s", error)


def state_of(policy: Learner) -> State:
    """The files of the policy's state, for `State`."""
    with TemporaryDirectory() as folder:
        policy.save_state(Path(folder))
        return State({path.name: path.read_bytes() for path in Path(folder).iterdir()})
