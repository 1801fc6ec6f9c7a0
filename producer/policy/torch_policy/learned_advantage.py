"""Base class of an advantage that the update computes with weights of its own (gae, prime).

To add one: add its settings to `producer.algorithms.settings`, an entry to `ADVANTAGES`, and a
subclass of this class to `in_process.LEARNED`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from producer.errors import MismatchError, UsageError
from producer.policy.learner import LearnedAdvantages, Trajectory
from producer.policy.torch_policy.logprobs import CompletionStates
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.training_sequences import PaddedBatch, TrainingSequence
from producer.policy.torch_policy.update_passes import JointLoss, Lend, UpdatePasses


class LearnedAdvantage(ABC):
    """Weights with their optimiser, and the advantages that they provide to an update."""

    num_adapters: ClassVar[int]
    """Number of additional adapters of the policy's size that must fit into memory."""
    title: ClassVar[str]
    saved_at: ClassVar[str]
    """File or folder of its weights in a checkpoint."""
    kept_at: ClassVar[str]
    """File of its weights in a state."""
    optimizer_at: ClassVar[str]
    """File of its optimiser in a state."""
    own: ClassVar[str]
    """End of the error message for saved weights that do not fit: what to use instead."""
    joint_parameters: Sequence[nn.Parameter] = ()
    """Parameters trained in the policy's backward pass."""
    _optimizer: torch.optim.AdamW

    @abstractmethod
    def __init__(self, network: Network, seed: int) -> None:
        """Creates `_optimizer`. Raises UsageError if the network cannot have these weights."""

    @abstractmethod
    def prepare(
        self,
        passes: UpdatePasses,
        trajectories: Sequence[Trajectory],
        sequences: Sequence[TrainingSequence],
        lend: Lend | None,
    ) -> list[TrainingSequence]:
        """Begin an update: the sequences, all trained on, with their advantages."""

    def joint_loss(self, states: CompletionStates, batch: PaddedBatch) -> JointLoss | None:  # noqa: ARG002  # a subclass reads them
        """Loss added to the policy's, or None. Called from several threads."""
        return None

    def begin_step(self) -> None:  # noqa: B027  # nothing without joint parameters
        """Clear the gradients of `joint_parameters`."""

    def end_step(  # noqa: B027  # as above
        self, max_gradient_norm: float | None, sums: Sequence[tuple[float, ...]]
    ) -> None:
        """Take one optimiser step on `joint_parameters`.

        `sums` are those of the micro-batches' joint losses in the first pass over the batch.
        """

    @abstractmethod
    def result(
        self, sequences: Sequence[TrainingSequence], num_trajectories: int
    ) -> LearnedAdvantages:
        """Result after the last step; `sequences` is what `prepare` returned, not empty."""

    @abstractmethod
    def weights(self) -> dict[str, Tensor]:
        """Weights by their names in files."""

    @abstractmethod
    def set_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Set weights with these names and shapes."""

    def save(self, folder: Path) -> None:
        """Write the weights to a checkpoint folder, creating it if necessary."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file(self.weights(), folder / self.saved_at)

    def save_state(self, folder: Path) -> None:
        """Write weights and optimiser to the folder of a state."""
        save_file(self.weights(), folder / self.kept_at)
        torch.save({"optimizer": self._optimizer.state_dict()}, folder / self.optimizer_at)

    @classmethod
    def file_in(cls, folder: Path) -> Path | None:
        """The file of the weights in a state or a checkpoint; None if it has none."""
        files = (folder / name for name in (cls.kept_at, cls.saved_at))
        return next((file for file in files if file.is_file()), None)

    def load(self, path: Path) -> None:
        """Read the file of the weights, and bit for bit the optimiser that a state has beside it.

        Raises UsageError if it is damaged, MismatchError if it does not fit.
        """
        try:
            weights = load_file(path)
        except SafetensorError as error:
            message = f"{path} is damaged ({error}); copy it again, or remove it to begin at 0"
            raise UsageError(message) from error
        shapes = {name: tensor.shape for name, tensor in weights.items()}
        if shapes != {name: tensor.shape for name, tensor in self.weights().items()}:
            message = f"the {self.title} {path} does not fit this policy{self.own}"
            raise MismatchError(message)
        self.set_weights(weights)
        if (optimizer := path.parent / self.optimizer_at).is_file():
            stored = torch.load(optimizer, weights_only=True)
            self._optimizer.load_state_dict(stored["optimizer"])
