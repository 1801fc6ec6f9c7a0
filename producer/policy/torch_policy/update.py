"""One policy-gradient update of the adapter, and of an advantage's own weights.

Axes: N completion tokens of all sequences.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import torch
from torch import Tensor

from producer.algorithms.aggregation import BatchSize
from producer.algorithms.kl import KL_ESTIMATORS, kl_penalized, kl_sample_train
from producer.algorithms.settings import UpdateSettings
from producer.policy.compute_settings import Switch
from producer.policy.learner import Trajectory, UpdateResult
from producer.policy.torch_policy.cpu_parallel import add_gradients, split_evenly
from producer.policy.torch_policy.learned_advantage import LearnedAdvantage
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.optimizer import optimizer_step
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.training_sequences import TrainingSequence, training_sequences
from producer.policy.torch_policy.update_passes import BackwardPass, Lend, UpdatePasses
from producer.seeds import derived_seed


@dataclass(slots=True)
class Measured:
    """Sums over the substeps done."""

    losses: list[float] = field(default_factory=list)
    gradient_norms: list[float] = field(default_factory=list)
    token_loss: float = 0.0
    logprobs: list[Tensor] = field(default_factory=list)
    """[2, N] of each micro-batch: current and sampled."""

    def add(self, one: BackwardPass, *, is_first: bool = True) -> float:
        """Add what this micro-batch measured, in the first pass over the batch alone.

        Returns its share of the loss.
        """
        if not is_first:
            return one.loss
        self.token_loss += one.token_loss
        self.logprobs.append(one.logprobs_2N)
        return one.loss


def policy_gradient(
    network: Network,
    encoder: ScreenEncoder,
    optimizer: torch.optim.AdamW,
    trajectories: Sequence[Trajectory],
    settings: UpdateSettings,
    gradient_checkpointing: Switch = "auto",
    *,
    learned: LearnedAdvantage | None = None,
    lend: Lend | None = None,
) -> UpdateResult:
    """Update the adapter on the trajectories that are trained on, and measure all of them.

    `learned`: computes the advantages from the trajectories' outcomes, and is trained; None: the
    trajectories have their advantages.

    Without completion tokens nothing changes and the result's means are NaN. `lend` is called now
    and then until the first optimiser step: the network is whole and may be sampled from.
    """
    began = time.monotonic()
    adapter = network.trainable()
    passes = UpdatePasses(
        network,
        encoder,
        settings,
        learned,
        [*adapter, *([] if learned is None else learned.joint_parameters)],
        network.max_workers,
    )
    sequences = training_sequences(trajectories, network.device)
    if settings.kl_penalty_coef != 0 and sequences:
        sequences = [
            replace(one, base_logprobs_N=base_N)
            for one, base_N in zip(sequences, passes.base_logprobs(sequences), strict=True)
        ]
    trained = [sequence for sequence in sequences if sequence.is_trained]
    if learned is not None:
        trained = learned.prepare(passes, trajectories, trained, gradient_checkpointing, lend)
    with_advantages, trained = trained, _with_kl_penalty(settings, trained)
    # The order is a seeded shuffle, so that a substep does not see one task's groups alone.
    shuffled = random.Random(settings.seed).sample(trained, len(trained))  # noqa: S311  # order, not secrets
    substeps = split_evenly(shuffled, settings.num_substeps)
    num_first = len(substeps)
    others = split_evenly(
        [sequence for sequence in sequences if not sequence.is_trained], max(1, len(substeps))
    )
    done = Measured()
    for number, (substep, measured) in enumerate(
        zip_longest(substeps * settings.ppo_epochs, others, fillvalue=())
    ):
        may_lend = None if done.losses else lend
        done.logprobs += passes.measure(measured, may_lend)
        if substep:
            _substep(
                *(passes, optimizer, substep, gradient_checkpointing, done, may_lend),
                is_first=number < num_first,
            )
    num_tokens = sum(len(item.advantages_N) for item in trained)
    result = update_result(passes, sequences, done, num_tokens=num_tokens, began_s=began)
    if learned is None or not num_tokens:
        return result
    return replace(result, learned=learned.result(with_advantages, len(trajectories)))


def update_result(
    passes: UpdatePasses,
    sequences: Sequence[TrainingSequence],
    done: Measured,
    *,
    num_tokens: int,
    began_s: float,
) -> UpdateResult:
    """What an update came to after its last optimiser step, without a learned advantage's part.

    `sequences`: all that were measured; `num_tokens`: those that were trained on.
    """
    settings = passes.settings
    trained_N, sampled_N = torch.cat(done.logprobs, dim=1) if done.logprobs else torch.zeros((2, 0))
    kl = kl_sample_train(sampled_N, trained_N)
    post_N, before_N = _after_update(passes, sequences)
    post = kl_sample_train(before_N, post_N)
    num_substeps = max(1, len(done.losses))
    return UpdateResult(
        loss=sum(done.losses) / (1 if settings.loss_aggregation == "sum" else num_substeps),
        loss_per_token=done.token_loss / max(1, num_tokens),
        kl_sample_train_v1=kl.v1,
        kl_sample_train_v2=kl.v2,
        kl_policy_base=_kl_policy_base(sequences),
        kl_pre_post_v1=post.v1 if settings.compute_post_kl and len(post_N) else None,
        kl_pre_post_v2=post.v2 if settings.compute_post_kl and len(post_N) else None,
        entropy=float(-sampled_N.mean()),
        gradient_norm=sum(done.gradient_norms) / num_substeps,
        num_tokens=num_tokens,
        num_measured_tokens=sampled_N.numel(),
        seconds=time.monotonic() - began_s,
    )


def _substep(
    passes: UpdatePasses,
    optimizer: torch.optim.AdamW,
    substep: Sequence[TrainingSequence],
    gradient_checkpointing: Switch,
    done: Measured,
    lend: Lend | None,
    *,
    is_first: bool,
) -> None:
    """One optimiser step on the sequences; its measurements are added to `done`.

    `is_first`: of the first pass over the batch.
    """
    settings, learned = passes.settings, passes.learned
    size = BatchSize(sum(len(item.advantages_N) for item in substep), len(substep))
    optimizer.zero_grad(set_to_none=True)
    if learned is not None:
        learned.begin_step()
    loss = 0.0
    joint_sums = []
    dropout_seed = derived_seed(settings.seed, "dropout", len(done.losses))
    for item in passes.backward(
        substep, size, gradient_checkpointing, lend, dropout_seed=dropout_seed
    ):
        add_gradients(passes.parameters, item.gradients)
        loss += done.add(item, is_first=is_first)
        if is_first and item.joint_sums:
            joint_sums.append(item.joint_sums)
    done.losses.append(loss)
    max_norm = settings.max_gradient_norm
    done.gradient_norms.append(
        optimizer_step(optimizer, settings.learning_rate, max_norm, settings.weight_decay)
    )
    if learned is not None:
        learned.end_step(max_norm, joint_sums)


def _with_kl_penalty(
    settings: UpdateSettings, sequences: list[TrainingSequence]
) -> list[TrainingSequence]:
    """The sequences with advantages penalised by their KL divergence from the base policy."""
    base = [
        sequence.base_logprobs_N for sequence in sequences if sequence.base_logprobs_N is not None
    ]
    if settings.kl_in == "loss" or not base:
        return sequences
    sampled_N = torch.cat([sequence.sampled_logprobs_N for sequence in sequences])
    penalized_N = kl_penalized(
        torch.cat([sequence.advantages_N for sequence in sequences]),
        KL_ESTIMATORS[settings.kl_estimator](sampled_N, torch.cat(base)),
        settings.kl_penalty_coef,
    )
    lengths = [len(sequence.sampled_logprobs_N) for sequence in sequences]
    return [
        replace(one, advantages_N=own_N)
        for one, own_N in zip(sequences, torch.split(penalized_N, lengths), strict=True)
    ]


def _kl_policy_base(sequences: Sequence[TrainingSequence]) -> float | None:
    """Mean of log p_sampled - log p_base; None: not measured."""
    differences = [
        sequence.sampled_logprobs_N - sequence.base_logprobs_N
        for sequence in sequences
        if sequence.base_logprobs_N is not None
    ]
    return float(torch.cat(differences).mean()) if differences else None


def _after_update(passes: UpdatePasses, sequences: Sequence[TrainingSequence]) -> Tensor:
    """Log-probs [2, N] of every token under the updated network, and as sampled."""
    if not passes.settings.compute_post_kl or not sequences:
        return torch.zeros((2, 0))
    return torch.cat(passes.measure(sequences), dim=1)
