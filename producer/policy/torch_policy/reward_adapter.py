"""The implicit reward model of PRIME: a second adapter on the policy's base, with an optimiser.

Its B begins at 0, so that it begins at the reference: the base without adapters. It is active
inside `active` alone; elsewhere the network is the policy. It lies in a folder of its own, which
plain peft loads.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from producer.errors import MismatchError, UsageError
from producer.policy.adapter_settings import REWARD_ADAPTER, WEIGHTS
from producer.policy.torch_policy.adapters import (
    POLICY_ADAPTER,
    adapter_weights,
    load_adapter_weights,
    second_adapter,
)
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.optimizer import make_optimizer, optimizer_step
from producer.policy.torch_policy.state import save_adapter

_WEIGHTS: Final = "prime_adapter.safetensors"
_OPTIMIZER: Final = "prime_optimizer.pt"


def has_reward_state(folder: Path) -> bool:
    """Whether a saved state has one."""
    return (folder / _WEIGHTS).is_file()


def has_reward_adapter(folder: Path) -> bool:
    """Whether a checkpoint has one."""
    return (folder / REWARD_ADAPTER / WEIGHTS).is_file()


class RewardAdapter:
    """An adapter of the rank, scale and targets of the policy's, with its optimiser."""

    def __init__(self, network: Network, seed: int) -> None:
        """Takes the place of an earlier one; its A is drawn from `seed`.

        UsageError for a network whose weights peft adapts once only.
        """
        if network.max_workers is not None:
            message = (
                f"advantage: prime needs a second adapter on {network.name}, and peft adapts fused"
                " experts once; use another advantage, such as rloo"
            )
            raise UsageError(message)
        self._network = network
        second_adapter(network.adapted, REWARD_ADAPTER, seed)
        with self.active():
            self.parameters: tuple[nn.Parameter, ...] = tuple(network.trainable())
        self._optimizer = make_optimizer(self.parameters)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Inside the context the network is the reward model; not to be sampled from."""
        self._network.adapted.set_adapter(REWARD_ADAPTER)
        try:
            yield
        finally:
            self._network.adapted.set_adapter(POLICY_ADAPTER)

    def begin_step(self) -> None:
        """Clear the gradients."""
        self._optimizer.zero_grad(set_to_none=True)

    def step(self, learning_rate: float, max_gradient_norm: float | None) -> float:
        """One optimiser step; returns the gradient's norm before clipping."""
        return optimizer_step(self._optimizer, learning_rate, max_gradient_norm)

    def save(self, folder: Path) -> None:
        """Write it in PEFT's layout into a folder of its own in `folder`, synced."""
        save_adapter(folder, self._network, REWARD_ADAPTER)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote; the optimiser begins anew.

        UsageError if it is damaged, MismatchError if it does not fit.
        """
        self._restore(folder / REWARD_ADAPTER / WEIGHTS)

    def save_state(self, folder: Path) -> None:
        """Write weights and optimiser into the folder."""
        save_file(self._weights(), folder / _WEIGHTS)
        torch.save({"optimizer": self._optimizer.state_dict()}, folder / _OPTIMIZER)

    def load_state(self, folder: Path) -> None:
        """Read what `save_state` wrote, bit for bit. Raises as `load`."""
        self._restore(folder / _WEIGHTS)
        stored = torch.load(folder / _OPTIMIZER, weights_only=True)
        self._optimizer.load_state_dict(stored["optimizer"])

    def _restore(self, path: Path) -> None:
        try:
            weights = load_file(path)
        except SafetensorError as error:
            message = f"{path} is damaged ({error}); copy it again, or remove it to begin at 0"
            raise UsageError(message) from error
        shapes = {name: tensor.shape for name, tensor in weights.items()}
        if shapes != {name: tensor.shape for name, tensor in self._weights().items()}:
            message = (
                f"the reward model {path} does not fit this policy's adapter; use the lora_rank,"
                " target_modules and model_name that it was trained with"
            )
            raise MismatchError(message)
        load_adapter_weights(self._network.adapted, weights, REWARD_ADAPTER)

    def _weights(self) -> dict[str, Tensor]:
        """By their names in files."""
        return adapter_weights(self._network.adapted, REWARD_ADAPTER)
