"""GAE with a value head: a linear layer on the last hidden states that predicts later rewards.

The head starts at 0 and is computed in float32, whatever the network's dtype. It has its own
optimiser and its own file, so that plain peft can load the adapter.

Axes: B trajectories or sequences, T completion tokens of the longest, N completion tokens of one
sequence, D text dimension.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from producer.algorithms.losses import value_loss
from producer.algorithms.settings import GaeSettings
from producer.algorithms.token_advantages import gae
from producer.policy.adapter_settings import VALUE_HEAD
from producer.policy.learner import LearnedAdvantages, Trajectory
from producer.policy.torch_policy.learned_advantage import LearnedAdvantage
from producer.policy.torch_policy.logprobs import CompletionStates
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.optimizer import make_optimizer, optimizer_step
from producer.policy.torch_policy.training_sequences import (
    PaddedBatch,
    TrainingSequence,
    mean_advantages,
    trajectory_rows,
    unflatten,
)
from producer.policy.torch_policy.update_passes import JointLoss, Lend, UpdatePasses


class GaeAdvantage(LearnedAdvantage):
    """A value head with its optimiser."""

    num_adapters = 0
    title = "value head"
    saved_at = kept_at = VALUE_HEAD
    optimizer_at = "value_optimizer.pt"
    own = "; use its own model_name"

    def __init__(self, network: Network, seed: int = 0) -> None:
        """Starts with all values 0."""
        del seed
        hidden_size = network.base.config.get_text_config().hidden_size
        self._weight_1D = nn.Parameter(torch.zeros(1, hidden_size, device=network.device))
        self._bias_1 = nn.Parameter(torch.zeros(1, device=network.device))
        self.joint_parameters: Sequence[nn.Parameter] = [self._weight_1D, self._bias_1]
        self._optimizer = make_optimizer(self.joint_parameters)
        self._settings = GaeSettings()
        self._gradient_norms: list[float] = []
        self._value_loss = self._num_clipped = 0.0

    def values(self, hidden_ND: Tensor, coef: float = 0.0) -> Tensor:
        """[N]: the value before each token, from the hidden state that the token is drawn from.

        `coef` scales the gradient that reaches the hidden states; it does not affect the values.
        """
        frozen_ND = hidden_ND.detach().float()
        if coef != 0:
            # The difference is 0 but carries the gradient.
            frozen_ND = frozen_ND + coef * (hidden_ND.float() - frozen_ND)
        return nn.functional.linear(frozen_ND, self._weight_1D, self._bias_1)[:, 0]

    def prepare(
        self,
        passes: UpdatePasses,
        trajectories: Sequence[Trajectory],
        sequences: Sequence[TrainingSequence],
        lend: Lend | None,
    ) -> list[TrainingSequence]:
        """See `LearnedAdvantage`: advantages, whitened over all sequences, and returns."""
        settings = passes.settings.learned_advantage
        assert isinstance(settings, GaeSettings)  # noqa: S101  # `LEARNED`
        self._settings = settings
        self._gradient_norms = []
        self._value_loss = self._num_clipped = 0.0
        if not sequences:
            return []
        values = passes.of_states(lambda states: self.values(states.hidden_ND), sequences, lend)
        rows = trajectory_rows(sequences)
        rewards = [torch.tensor(trajectories[at].flat_rewards) for at in rows.trajectories]
        # Loops over tokens, so it runs on the CPU, in float64.
        result = gae(
            nn.utils.rnn.pad_sequence([own.double() for own in rewards], batch_first=True),
            rows.rows(values),
            rows.mask_BT,
            gamma=settings.gae_gamma,
            lam=settings.gae_lambda,
        )
        advantages = rows.parts(result.advantages_BT, values)
        returns = rows.parts(result.returns_BT, values)
        return [
            replace(item, advantages_N=advantages_N, values_N=values_N, returns_N=returns_N)
            for item, advantages_N, values_N, returns_N in zip(
                sequences, advantages, values, returns, strict=True
            )
        ]

    def joint_loss(self, states: CompletionStates, batch: PaddedBatch) -> JointLoss | None:
        """The clipped value loss, its sum over tokens and the number of clipped tokens."""
        if batch.values_BT is None or batch.returns_BT is None:
            return None
        values_N = self.values(states.hidden_ND, self._settings.value_coef)
        values_BT = unflatten([values_N], batch.mask_BT)
        clip = self._settings.value_clip
        loss_BT = value_loss(values_BT, batch.values_BT, batch.returns_BT, clip=clip)
        unclipped_BT = 0.5 * (values_BT.detach() - batch.returns_BT).square()
        is_clipped_BT = loss_BT.detach() > unclipped_BT
        sums = (
            float(loss_BT.detach()[batch.mask_BT].sum()),
            float(is_clipped_BT[batch.mask_BT].sum()),
        )
        return JointLoss(loss_BT, sums)

    def begin_step(self) -> None:
        """Clear the gradients."""
        self._optimizer.zero_grad(set_to_none=True)

    def end_step(self, max_gradient_norm: float | None, sums: Sequence[tuple[float, ...]]) -> None:
        """One optimiser step of the head."""
        rate = self._settings.value_learning_rate
        self._gradient_norms.append(optimizer_step(self._optimizer, rate, max_gradient_norm))
        for loss, num_clipped in sums:
            self._value_loss += loss
            self._num_clipped += num_clipped

    def result(
        self, sequences: Sequence[TrainingSequence], num_trajectories: int
    ) -> LearnedAdvantages:
        """Measurements of the value head.

        `value_mean` and `value_explained_variance` use the values before the update, over the
        trained tokens; the latter is None if all returns are equal. Gradient norms are the head's,
        before clipping, averaged over substeps.
        """
        values_N, returns_N = (
            torch.cat([tensor for tensor in tensors if tensor is not None]).double()
            for tensors in (
                [sequence.values_N for sequence in sequences],
                [sequence.returns_N for sequence in sequences],
            )
        )
        num_tokens = len(values_N)
        loss = self._value_loss / num_tokens
        variance = float(returns_N.var(correction=0))
        unexplained = float((returns_N - values_N).var(correction=0))
        return LearnedAdvantages(
            mean_advantages(sequences, num_trajectories),
            {
                "optim/value_loss": loss,
                "optim/value_clip_fraction": self._num_clipped / num_tokens,
                "optim/value_mean": float(values_N.mean()),
                "optim/value_explained_variance": (
                    1 - unexplained / variance if variance > 0 else None
                ),
                "optim/value_gradient_norm": (
                    sum(self._gradient_norms) / max(1, len(self._gradient_norms))
                ),
            },
            repeated={"optim/value_loss": loss},
        )

    def weights(self) -> dict[str, Tensor]:
        """Weights by their names in files; they share memory with the parameters."""
        return {"weight": self._weight_1D.detach(), "bias": self._bias_1.detach()}

    def set_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Set weights with these names and shapes."""
        for name, weight in self.weights().items():
            weight.copy_(weights[name])
