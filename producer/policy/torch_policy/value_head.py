"""The value head: what a linear layer on the last hidden states expects of a token's returns.

It starts at 0 and is computed in float32 whatever the network's dtype. It has an optimiser of its
own and lies in a file of its own, so that an adapter with it is still an adapter for plain peft.

Axes: N completion tokens, D text dimension.
"""

from pathlib import Path
from typing import Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from producer.errors import MismatchError, UsageError
from producer.policy.adapter_settings import VALUE_HEAD
from producer.policy.torch_policy.optimizer import make_optimizer, optimizer_step

_OPTIMIZER: Final = "value_optimizer.pt"


def has_value_head(folder: Path) -> bool:
    """Whether a state or checkpoint has one."""
    return (folder / VALUE_HEAD).is_file()


class ValueHead:
    """A linear layer with its optimiser."""

    def __init__(self, hidden_size: int, device: torch.device) -> None:
        """All values are 0."""
        self._weight_1D = nn.Parameter(torch.zeros(1, hidden_size, device=device))
        self._bias_1 = nn.Parameter(torch.zeros(1, device=device))
        self._optimizer = make_optimizer(self.parameters())

    def parameters(self) -> list[nn.Parameter]:
        """Weight [1, D] and bias [1]."""
        return [self._weight_1D, self._bias_1]

    def values(self, hidden_ND: Tensor, coef: float = 0.0) -> Tensor:
        """[N]: the value before each token, from the hidden state that the token is drawn from.

        `coef` is the weight of its gradient in the hidden states; the values do not depend on it.
        """
        frozen_ND = hidden_ND.detach().float()
        if coef != 0:
            # The difference is 0 and has the gradient.
            frozen_ND = frozen_ND + coef * (hidden_ND.float() - frozen_ND)
        return nn.functional.linear(frozen_ND, self._weight_1D, self._bias_1)[:, 0]

    def begin_step(self) -> None:
        """Clear the gradients."""
        self._optimizer.zero_grad(set_to_none=True)

    def step(self, learning_rate: float, max_gradient_norm: float | None) -> float:
        """One optimiser step; returns the gradient's norm before clipping."""
        return optimizer_step(self._optimizer, learning_rate, max_gradient_norm)

    def save(self, folder: Path) -> None:
        """Write the weights into the folder, which is made if it is not there."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file(self._weights(), folder / VALUE_HEAD)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote. UsageError if it is damaged, MismatchError if it does not fit."""
        path = folder / VALUE_HEAD
        try:
            weights = load_file(path)
        except SafetensorError as error:
            message = f"{path} is damaged ({error}); copy it again, or remove it to begin at 0"
            raise UsageError(message) from error
        own = self._weights()
        if {name: weight.shape for name, weight in weights.items()} != {
            name: weight.shape for name, weight in own.items()
        }:
            message = f"the value head {path} does not fit this policy; use its own model_name"
            raise MismatchError(message)
        for name, weight in weights.items():
            own[name].copy_(weight)

    def save_state(self, folder: Path) -> None:
        """Write weights and optimiser into the folder."""
        self.save(folder)
        torch.save({"optimizer": self._optimizer.state_dict()}, folder / _OPTIMIZER)

    def load_state(self, folder: Path) -> None:
        """Read what `save_state` wrote, bit for bit. Raises as `load`."""
        self.load(folder)
        stored = torch.load(folder / _OPTIMIZER, weights_only=True)
        self._optimizer.load_state_dict(stored["optimizer"])

    def _weights(self) -> dict[str, Tensor]:
        """By their names in files; they share memory with the parameters."""
        return {"weight": self._weight_1D.detach(), "bias": self._bias_1.detach()}
