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

VALUE_HEAD: Final = "value_head.safetensors"
"""In the folders of checkpoints and states."""
_OPTIMIZER: Final = "value_optimizer.pt"


def has_value_head(folder: Path) -> bool:
    """Whether a state or checkpoint has one."""
    return (folder / VALUE_HEAD).is_file()


class ValueHead:
    """A linear layer with its optimiser."""

    def __init__(self, hidden_size: int, device: torch.device) -> None:
        """All values are 0."""
        self._layer = nn.utils.skip_init(
            nn.Linear, hidden_size, 1, device=device, dtype=torch.float32
        )
        with torch.no_grad():
            for parameter in self._layer.parameters():
                parameter.zero_()
        # As the adapter's.
        self._optimizer = torch.optim.AdamW(
            self._layer.parameters(), lr=0.0, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0
        )

    def parameters(self) -> list[nn.Parameter]:
        """Weight [1, D] and bias [1]."""
        return list(self._layer.parameters())

    def values(self, hidden_ND: Tensor, coef: float = 0.0) -> Tensor:
        """[N]: the value before each token, from the hidden state that the token is drawn from.

        `coef` is the weight of its gradient in the hidden states; the values do not depend on it.
        """
        frozen_ND = hidden_ND.detach().float()
        if coef != 0:
            # The difference is 0 and has the gradient.
            frozen_ND = frozen_ND + coef * (hidden_ND.float() - frozen_ND)
        values_N1: Tensor = self._layer(frozen_ND)
        return values_N1[:, 0]

    def begin_step(self) -> None:
        """Clear the gradients."""
        self._optimizer.zero_grad(set_to_none=True)

    def step(self, learning_rate: float, max_gradient_norm: float | None) -> float:
        """One optimiser step; returns the gradient's norm before clipping."""
        norm = nn.utils.clip_grad_norm_(self.parameters(), max_gradient_norm or float("inf"))
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        self._optimizer.step()
        return float(norm)

    def save(self, folder: Path) -> None:
        """Write the weights into the folder, which is made if it is not there."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file(
            {name: weight.contiguous() for name, weight in self._layer.state_dict().items()},
            folder / VALUE_HEAD,
        )

    def load(self, folder: Path) -> None:
        """Read what `save` wrote. UsageError if it is damaged, MismatchError if it does not fit."""
        path = folder / VALUE_HEAD
        try:
            weights = load_file(path)
        except SafetensorError as error:
            message = f"{path} is damaged ({error}); copy it again, or remove it to begin at 0"
            raise UsageError(message) from error
        own = self._layer.state_dict()
        if {name: weight.shape for name, weight in weights.items()} != {
            name: weight.shape for name, weight in own.items()
        }:
            message = f"the value head {path} does not fit this policy; use its own model_name"
            raise MismatchError(message)
        self._layer.load_state_dict(weights)

    def save_state(self, folder: Path) -> None:
        """Write weights and optimiser into the folder."""
        self.save(folder)
        torch.save(self._optimizer.state_dict(), folder / _OPTIMIZER)

    def load_state(self, folder: Path) -> None:
        """Read what `save_state` wrote, bit for bit. Raises as `load`."""
        self.load(folder)
        self._optimizer.load_state_dict(torch.load(folder / _OPTIMIZER, weights_only=True))
