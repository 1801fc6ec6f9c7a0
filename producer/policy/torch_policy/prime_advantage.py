"""PRIME: an implicit reward model learns from the outcomes, then provides the advantages.

The model is a second adapter on the policy's base, with its own optimiser. Its B starts at 0, so
that it starts equal to the reference, the base without adapters. It is active only inside `active`;
elsewhere the network is the policy. It is saved to a subfolder that plain peft can load. As in
verl's recipe (`update: before`), it takes one optimiser step on the batch before its log-ratios are
used.

Axes: B trajectories, T completion tokens of the longest, N completion tokens of one sequence.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from producer.algorithms.losses import BatchSize
from producer.algorithms.settings import PrimeSettings
from producer.algorithms.token_advantages import (
    compute_prime_advantage,
    implicit_rewards,
    reward_model_loss,
)
from producer.errors import UsageError
from producer.policy.adapter_settings import REWARD_ADAPTER, WEIGHTS
from producer.policy.learner import LearnedAdvantages, Trajectory
from producer.policy.torch_policy.adapters import (
    POLICY_ADAPTER,
    adapter_weights,
    load_adapter_weights,
    second_adapter,
)
from producer.policy.torch_policy.cpu_parallel import add_gradients
from producer.policy.torch_policy.learned_advantage import LearnedAdvantage
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.optimizer import make_optimizer, optimizer_step
from producer.policy.torch_policy.state import save_adapter
from producer.policy.torch_policy.training_sequences import (
    TrainingSequence,
    TrajectoryRows,
    mean_advantages,
    trajectory_rows,
)
from producer.policy.torch_policy.update_passes import Lend, UpdatePasses


class PrimeAdvantage(LearnedAdvantage):
    """A reward model with its optimiser.

    Its adapter has the rank, scale and targets of the policy's.
    """

    num_adapters = 1
    title = "reward model"
    saved_at = f"{REWARD_ADAPTER}/{WEIGHTS}"
    kept_at = "prime_adapter.safetensors"
    optimizer_at = "prime_optimizer.pt"
    own = "'s adapter; use the lora_rank, target_modules and model_name that it was trained with"

    def __init__(self, network: Network, seed: int) -> None:
        """Replaces an earlier reward model; the adapter's A is drawn from `seed`.

        Raises UsageError for a network whose weights peft can adapt only once.
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
        self._measured: dict[str, float] = {}

    @contextmanager
    def active(self) -> Iterator[None]:
        """Inside the context the network is the reward model; do not sample from it."""
        self._network.adapted.set_adapter(REWARD_ADAPTER)
        try:
            yield
        finally:
            self._network.adapted.set_adapter(POLICY_ADAPTER)

    def prepare(
        self,
        passes: UpdatePasses,
        trajectories: Sequence[Trajectory],
        sequences: Sequence[TrainingSequence],
        lend: Lend | None,
    ) -> list[TrainingSequence]:
        """See `LearnedAdvantage`; takes one step of the reward model first.

        Log-probs are computed at temperature 1, whatever the policy's. A rollout without tokens
        belongs to no group. Without sequences nothing changes.
        """
        del lend
        settings = passes.settings.learned_advantage
        assert isinstance(settings, PrimeSettings)  # noqa: S101  # `LEARNED`
        if not sequences:
            return []
        rows = trajectory_rows(sequences)
        outcomes = [trajectories[at].outcome for at in rows.trajectories]
        is_right_B = torch.tensor([float(item.is_right) for item in outcomes], dtype=torch.float64)
        rewards_B = torch.tensor([item.reward for item in outcomes], dtype=torch.float64)
        own = self._own_passes(passes)
        reference = own.base_logprobs(sequences)
        reference_BT = rows.rows(reference)
        with self.active():
            before_BT = rows.rows(own.logprobs(sequences)).requires_grad_()
            loss = reward_model_loss(
                before_BT, reference_BT, rows.mask_BT, is_right_B, settings.prime_beta
            )
            (weights_BT,) = torch.autograd.grad(loss, before_BT)
            weights = rows.parts(weights_BT, reference)
            norm = self._step(own, sequences, weights, settings)
            after_BT = rows.rows(own.logprobs(sequences))
        process_BT = implicit_rewards(after_BT, reference_BT, rows.mask_BT, settings.prime_beta)
        groups = [item.group for item in outcomes]
        advantages_BT, _ = compute_prime_advantage(
            process_BT, rewards_B, rows.mask_BT, groups, settings
        )
        self._measured = _measurements(before_BT, reference_BT, process_BT, is_right_B, rows)
        self._measured |= {"prime/loss": float(loss.detach()), "prime/gradient_norm": norm}
        return [
            replace(item, advantages_N=advantages_N)
            for item, advantages_N in zip(
                sequences, rows.parts(advantages_BT, reference), strict=True
            )
        ]

    def _own_passes(self, passes: UpdatePasses) -> UpdatePasses:
        """Passes of the reward model, with the gradient of a weighted sum of log-probs."""
        changes = {
            "loss_fn": "reinforce",
            "loss_aggregation": "sum",
            "temperature": 1.0,
            "kl_in": "advantage",
            "entropy_coef": 0.0,
        }
        return replace(
            passes,
            settings=passes.settings.model_copy(update=changes),
            joint_loss=None,
            parameters=self.parameters,
        )

    def _step(
        self,
        passes: UpdatePasses,
        sequences: Sequence[TrainingSequence],
        weights: Sequence[Tensor],
        settings: PrimeSettings,
    ) -> float:
        """Take one optimiser step on the weighted log-probs; returns the gradient norm."""
        weighted = [
            replace(item, advantages_N=-weights_N)
            for item, weights_N in zip(sequences, weights, strict=True)
        ]
        self._optimizer.zero_grad(set_to_none=True)
        size = BatchSize(sum(len(item) for item in weights), len(sequences))
        for item in passes.backward(weighted, size, passes.settings.seed):
            add_gradients(passes.parameters, item.gradients)
        return optimizer_step(
            self._optimizer, settings.prime_learning_rate, passes.settings.max_gradient_norm
        )

    def result(
        self, sequences: Sequence[TrainingSequence], num_trajectories: int
    ) -> LearnedAdvantages:
        """Measurements of the reward model.

        `loss` and `accuracy` measure its predictions of the outcomes before its step, averaged over
        trajectories: the cross-entropy in nats, and the share predicted correctly, where a positive
        sum of log-ratios predicts a right answer. `reward_mean` is the mean process reward per
        token after its step; `gradient_norm` is before clipping.
        """
        return LearnedAdvantages(
            mean_advantages(sequences, num_trajectories),
            self._measured,
            repeated={name: self._measured[name] for name in ("prime/loss", "prime/reward_mean")},
        )

    def weights(self) -> dict[str, Tensor]:
        """Weights by their names in files."""
        return adapter_weights(self._network.adapted, REWARD_ADAPTER)

    def set_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Set weights with these names and shapes."""
        load_adapter_weights(self._network.adapted, dict(weights), REWARD_ADAPTER)

    def save(self, folder: Path) -> None:
        """Write the adapter in PEFT's layout to its subfolder of `folder`, synced."""
        save_adapter(folder, self._network, REWARD_ADAPTER)


def _measurements(
    before_BT: Tensor,
    reference_BT: Tensor,
    process_BT: Tensor,
    is_right_B: Tensor,
    rows: TrajectoryRows,
) -> dict[str, float]:
    told_right_B = (before_BT.detach() - reference_BT).sum(dim=1) > 0
    return {
        "prime/accuracy": float((told_right_B == is_right_B.bool()).double().mean()),
        "prime/reward_mean": float(process_BT[rows.mask_BT].mean()),
    }
