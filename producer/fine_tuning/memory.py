"""The memory of a supervised training: how large its passes are, and whether they fit."""

from dataclasses import dataclass

import torch

from producer.policy.memory_demand import (
    NetworkSize,
    Term,
    fitting_demand,
    pass_tokens,
)
from producer.policy.torch_policy.memory_check import check_fitting_memory


@dataclass(frozen=True, slots=True)
class FittingMemory:
    """Of one policy on one device."""

    name: str
    size: NetworkSize
    device: torch.device
    num_lanes: int
    """Passes that run at the same time."""
    has_logits: bool
    """Of the whole vocabulary; reward models have none."""
    checkpointed: bool

    @property
    def pass_tokens(self) -> int:
        """Padded tokens of one pass; a longer example is a pass of its own."""
        return pass_tokens(
            self.size,
            self.device.type,
            has_logits=self.has_logits,
            checkpointed=self.checkpointed,
        )

    def check_weights(self) -> None:
        """UsageError unless weights and passes fit; before any weight is read."""
        check_fitting_memory(self.name, self.device, self._demand(self.pass_tokens))

    def check_longest(self, num_tokens: int) -> None:
        """UsageError unless a pass of the longest example fits; once the weights are loaded."""
        if num_tokens > self.pass_tokens:
            check_fitting_memory(self.name, self.device, self._demand(num_tokens)[1:])

    def _demand(self, num_tokens: int) -> list[Term]:
        return fitting_demand(
            *(self.size, num_tokens, self.num_lanes),
            has_logits=self.has_logits,
            checkpointed=self.checkpointed,
        )
