"""An objective computed in bfloat16: matrix products round, weights and optimiser stay float32."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic

import torch
from torch import Tensor

from producer.supervised.objective import Item, LoadedNetwork, Objective


@contextmanager
def autocast(device: torch.device, *, is_bfloat16: bool) -> Iterator[None]:
    """Inside the context products are of bfloat16, if so asked. Per thread, as torch has it."""
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=is_bfloat16):
        yield


@dataclass(frozen=True, slots=True)
class InBfloat16(Generic[Item]):
    """The objective of the same items, each pass within `autocast`."""

    objective: Objective[Item]

    def num_tokens(self, item: Item) -> int:
        """As the objective."""
        return self.objective.num_tokens(item)

    def num_targets(self, item: Item) -> float:
        """As the objective."""
        return self.objective.num_targets(item)

    def loss_sum(self, network: LoadedNetwork, items: Sequence[Item]) -> Tensor:
        """As the objective, rounded."""
        with autocast(network.device, is_bfloat16=True):
            return self.objective.loss_sum(network, items)
