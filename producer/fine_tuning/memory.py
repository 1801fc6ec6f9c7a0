"""The memory of a supervised training: the size of its passes, and whether they fit."""

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
    """Memory demand of one policy on one device."""

    name: str
    size: NetworkSize
    device: torch.device
    num_lanes: int
    """Number of concurrent passes."""
    has_logits: bool
    """Whether logits over the whole vocabulary are computed; reward models have none."""
    checkpointed: bool

    @property
    def pass_tokens(self) -> int:
        """Padded tokens per pass. A longer example forms its own pass."""
        return pass_tokens(
            self.size,
            self.device.type,
            has_logits=self.has_logits,
            checkpointed=self.checkpointed,
        )

    def check_weights(self) -> None:
        """Raise UsageError unless weights and passes fit. Called before any weight is read."""
        check_fitting_memory(self.name, self.device, self._demand(self.pass_tokens))

    def check_longest(self, num_tokens: int) -> None:
        """Raise UsageError unless a pass of the longest example fits.

        Called after loading weights.
        """
        if num_tokens > self.pass_tokens:
            check_fitting_memory(self.name, self.device, self._demand(num_tokens)[1:])

    def _demand(self, num_tokens: int) -> list[Term]:
        return fitting_demand(
            *(self.size, num_tokens, self.num_lanes),
            has_logits=self.has_logits,
            checkpointed=self.checkpointed,
        )
