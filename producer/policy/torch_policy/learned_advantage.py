"""The interface of an advantage that the update computes with weights of its own (gae, prime).

To add one: its settings in `producer.algorithms.settings`, its entry in `ADVANTAGES`, a class here
in `learned_advantages.LEARNED`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from torch import Tensor, nn

from producer.policy.learner import LearnedAdvantages, Trajectory
from producer.policy.torch_policy.logprobs import CompletionStates
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.training_sequences import PaddedBatch, TrainingSequence

if TYPE_CHECKING:
    from producer.policy.compute_settings import Switch
    from producer.policy.torch_policy.update_passes import Lend, UpdatePasses


class JointLoss(NamedTuple):
    """A loss that is added to the policy's, of one micro-batch."""

    loss_BT: Tensor
    sums: tuple[float, ...]
    """Measurements that `end_step` adds up."""


class LearnedAdvantage(Protocol):
    """Weights with their optimiser, and the advantages that they give an update."""

    num_adapters: ClassVar[int]
    """Adapters of the policy's size for which there must be memory."""
    joint_parameters: Sequence[nn.Parameter]
    """Trained in the policy's backward pass."""

    def __init__(self, network: Network, seed: int) -> None:
        """UsageError if the network cannot have them."""

    def prepare(
        self,
        passes: "UpdatePasses",
        trajectories: Sequence[Trajectory],
        sequences: Sequence[TrainingSequence],
        gradient_checkpointing: "Switch",
        lend: "Lend | None",
    ) -> list[TrainingSequence]:
        """The sequences, all trained on, with their advantages. Begins an update."""
        ...

    def joint_loss(self, states: CompletionStates, batch: PaddedBatch) -> JointLoss | None:
        """What is added to the policy's loss; None: nothing. Called from several threads."""
        ...

    def begin_step(self) -> None:
        """Clear the gradients of `joint_parameters`."""
        ...

    def end_step(self, max_gradient_norm: float | None, sums: Sequence[tuple[float, ...]]) -> None:
        """One optimiser step on `joint_parameters`.

        `sums`: of the micro-batches' joint losses in the first pass over the batch.
        """
        ...

    def result(
        self, sequences: Sequence[TrainingSequence], num_trajectories: int
    ) -> LearnedAdvantages:
        """Of the update, after its last step; `sequences`: what `prepare` returned, not empty."""
        ...

    @staticmethod
    def is_saved(folder: Path) -> bool:
        """Whether a checkpoint has the weights."""
        ...

    @staticmethod
    def has_state(folder: Path) -> bool:
        """Whether a saved state has weights and optimiser."""
        ...

    def save(self, folder: Path) -> None:
        """Write the weights into a checkpoint."""
        ...

    def load(self, folder: Path) -> None:
        """Read what `save` wrote; the optimiser begins anew.

        UsageError if it is damaged, MismatchError if it does not fit.
        """
        ...

    def save_state(self, folder: Path) -> None:
        """Write weights and optimiser into the folder of a state."""
        ...

    def load_state(self, folder: Path) -> None:
        """Read what `save_state` wrote, bit for bit. Raises as `load`."""
        ...
