"""One policy-gradient update of the adapter, and of a learned advantage's weights.

Axes: N completion tokens of all sequences.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor

from producer.algorithms.losses import KL_ESTIMATORS, BatchSize, kl_penalized, kl_sample_train
from producer.algorithms.names import CLIPPED
from producer.algorithms.settings import UpdateSettings
from producer.policy.compute_settings import Switch
from producer.policy.learner import SamplerGap, Trajectory, UpdateResult
from producer.policy.sequences import Substep, split_into_substeps
from producer.policy.torch_policy.cpu_parallel import add_gradients
from producer.policy.torch_policy.device_memory import take_peak_bytes
from producer.policy.torch_policy.learned_advantage import LearnedAdvantage
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.optimizer import optimizer_step
from producer.policy.torch_policy.ranks import Ranks
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.training_sequences import TrainingSequence, training_sequences
from producer.policy.torch_policy.update_passes import BackwardPass, Lend, UpdatePasses
from producer.seeds import derived_seed

MAX_EXPONENT = 700.0
"""Above this, exp overflows float64."""


@dataclass(slots=True)
class Measured:
    """Sums over the substeps so far."""

    losses: list[float] = field(default_factory=list)
    gradient_norms: list[float] = field(default_factory=list)
    token_loss: float = 0.0
    logprobs: list[Tensor] = field(default_factory=list)
    """[2, N] per micro-batch: current and sampled log-probs."""
    first_logprobs: list[Tensor] = field(default_factory=list)
    """Those computed before the first optimiser step, with the weights that sampled."""
    num_clipped: int = 0
    """Number of trained tokens whose ratio was clipped, over all passes."""
    largest_log_ratio: float = -math.inf
    """Maximum over trained tokens and all passes."""

    def on_cpu(self) -> "Measured":
        """With its tensors in host memory, for other processes."""
        return replace(
            self,
            logprobs=[part.cpu() for part in self.logprobs],
            first_logprobs=[part.cpu() for part in self.first_logprobs],
        )

    def measure(self, logprobs: list[Tensor]) -> None:
        """Add log-probs of micro-batches."""
        self.logprobs += logprobs
        if not self.losses:
            self.first_logprobs += logprobs

    def measure_still(self, logprobs: list[Tensor]) -> None:
        """Add log-probs of micro-batches that are trained on with a loss of 0."""
        self.measure(logprobs)
        for trained_N, sampled_N in logprobs:
            largest = float((trained_N - sampled_N).max())
            self.largest_log_ratio = max(self.largest_log_ratio, largest)

    def add(self, current: BackwardPass, *, is_first: bool) -> float:
        """Add the measurements of a micro-batch; log-probs only in the first pass over the batch.

        Returns its share of the loss.
        """
        self.num_clipped += current.num_clipped
        self.largest_log_ratio = max(self.largest_log_ratio, current.largest_log_ratio)
        if not is_first:
            return current.loss
        self.token_loss += current.token_loss
        self.measure([current.logprobs_2N])
        return current.loss


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
    ranks: Ranks | None = None,
) -> UpdateResult:
    """Update the adapter on the trajectories marked for training, and measure all of them.

    `learned` computes the advantages from the trajectories' outcomes and is trained too; None: the
    trajectories already have advantages.

    `ranks`: processes that compute the same update, each a share of its sequences; each of them
    gets the result, without a learned advantage. None: this process works alone.

    Without completion tokens nothing changes and the result's means are NaN. `lend` is called now
    and then until the first optimiser step; inside it the network may be sampled from.
    """
    began = time.monotonic()
    adapter = network.trainable()
    passes = UpdatePasses(
        network,
        encoder,
        settings,
        None if learned is None else learned.joint_loss,
        [*adapter, *([] if learned is None else learned.joint_parameters)],
        network.max_workers,
        gradient_checkpointing,
    )
    sequences = training_sequences(trajectories, network.device)
    if settings.kl_penalty_coef != 0 and sequences:
        base = _joined(ranks, passes.base_logprobs, sequences)
        sequences = [
            replace(current, base_logprobs_N=base_N)
            for current, base_N in zip(sequences, base, strict=True)
        ]
    trained = [sequence for sequence in sequences if sequence.is_trained]
    if settings.importance_cap is not None and trained:
        own = _joined(ranks, partial(passes.logprobs, lend=lend), trained)
        trained = [
            replace(current, learner_logprobs_N=own_N)
            for current, own_N in zip(trained, own, strict=True)
        ]
    if learned is not None:
        trained = learned.prepare(passes, trajectories, trained, lend)
    with_advantages, trained = trained, _with_kl_penalty(settings, trained)
    others = [sequence for sequence in sequences if not sequence.is_trained]
    done = Measured()
    for substep in split_into_substeps(trained, others, settings):
        may_lend = None if done.losses else lend
        done.measure(passes.measure(_share(ranks, substep.measured), may_lend))
        if substep.trained:
            _take_step(passes, learned, optimizer, substep, done, may_lend, ranks)
    if ranks is not None:
        done = _total(ranks.gather(done.on_cpu()))
    num_tokens = sum(len(item.advantages_N) for item in trained)
    result = _result(passes, sequences, done, num_tokens=num_tokens, began_s=began)
    result = replace(result, capped_share=_capped_share(trained, settings.importance_cap))
    if learned is None or not num_tokens:
        return result
    return replace(result, learned=learned.result(with_advantages, len(trajectories)))


def _result(
    passes: UpdatePasses,
    sequences: Sequence[TrainingSequence],
    done: Measured,
    *,
    num_tokens: int,
    began_s: float,
) -> UpdateResult:
    """The result of an update after its last optimiser step, without the learned advantage.

    `sequences`: all that were measured; `num_tokens`: tokens that were trained on.
    """
    settings = passes.settings
    trained_N, sampled_N = torch.cat(done.logprobs, dim=1) if done.logprobs else torch.zeros((2, 0))
    kl = kl_sample_train(sampled_N, trained_N)
    post_N, before_N = _after_update(passes, sequences)
    post = kl_sample_train(before_N, post_N)
    num_substeps = max(1, len(done.losses))
    clips = settings.loss_fn in CLIPPED and num_tokens > 0
    bound = settings.max_gradient_norm or math.inf
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
        peak_memory_bytes=take_peak_bytes(passes.network.device),
        estimated_memory_bytes=passes.network.estimated_bytes,
        sampler_gap=_sampler_gap(done.first_logprobs),
        clip_fraction=done.num_clipped / (num_tokens * settings.ppo_epochs) if clips else None,
        largest_ratio=math.exp(min(done.largest_log_ratio, MAX_EXPONENT)) if num_tokens else None,
        clipped_gradient_norm=sum(min(norm, bound) for norm in done.gradient_norms) / num_substeps,
        seconds=time.monotonic() - began_s,
    )


def _take_step(
    passes: UpdatePasses,
    learned: LearnedAdvantage | None,
    optimizer: torch.optim.AdamW,
    substep: Substep[TrainingSequence],
    done: Measured,
    lend: Lend | None,
    ranks: Ranks | None,
) -> None:
    """Take one optimiser step on the substep's sequences; adds the measurements to `done`."""
    settings = passes.settings
    trained, is_first = substep.trained, substep.is_first
    size = BatchSize(sum(len(item.advantages_N) for item in trained), len(trained))
    optimizer.zero_grad(set_to_none=True)
    if learned is not None:
        learned.begin_step()
    loss = 0.0
    joint_sums = []
    dropout_seed = derived_seed(settings.seed, "dropout", len(done.losses))
    pulling, still = _with_gradient(settings, trained, is_learned=learned is not None)
    if is_first and still:
        done.measure_still(passes.measure(_share(ranks, still), lend))
    for item in passes.backward(_share(ranks, pulling), size, dropout_seed, lend):
        add_gradients(passes.parameters, item.gradients)
        loss += done.add(item, is_first=is_first)
        if is_first and item.joint_sums:
            joint_sums.append(item.joint_sums)
    if ranks is not None:
        ranks.sum_gradients(passes.parameters)
    done.losses.append(loss)
    max_norm = settings.max_gradient_norm
    done.gradient_norms.append(
        optimizer_step(optimizer, settings.learning_rate, max_norm, settings.weight_decay)
    )
    if learned is not None:
        learned.end_step(max_norm, joint_sums)


def _with_gradient(
    settings: UpdateSettings, trained: Sequence[TrainingSequence], *, is_learned: bool
) -> tuple[Sequence[TrainingSequence], Sequence[TrainingSequence]]:
    """Sequences whose loss has a gradient, and those whose loss is 0 whatever the weights.

    If all are of the second kind they are returned as the first: a step is taken in any case.
    """
    has_other_terms = settings.entropy_coef or (
        settings.kl_in == "loss" and settings.kl_penalty_coef
    )
    if settings.loss_fn != "reinforce" or has_other_terms or is_learned:
        return trained, ()
    pulling = [item for item in trained if item.advantages_N.any()]
    if not pulling:
        return trained, ()
    return pulling, [item for item in trained if not item.advantages_N.any()]


def _share(
    ranks: Ranks | None, sequences: Sequence[TrainingSequence]
) -> Sequence[TrainingSequence]:
    """The sequences that this process computes."""
    return sequences if ranks is None else ranks.share(sequences)


def _joined(
    ranks: Ranks | None,
    compute: Callable[[Sequence[TrainingSequence]], list[Tensor]],
    sequences: Sequence[TrainingSequence],
) -> list[Tensor]:
    """Apply `compute` to all sequences, divided among the ranks."""
    if ranks is None:
        return compute(sequences)
    # A tensor of another rank's GPU would stay on that GPU.
    parts = ranks.joined(lambda share: [part.cpu() for part in compute(share)], sequences)
    return [part.to(sequences[0].advantages_N.device) for part in parts]


def _total(parts: Sequence[Measured]) -> Measured:
    """Combine the measurements of all ranks."""
    return Measured(
        losses=[sum(losses) for losses in zip(*(part.losses for part in parts), strict=True)],
        gradient_norms=parts[0].gradient_norms,
        token_loss=sum(part.token_loss for part in parts),
        logprobs=[tensor for part in parts for tensor in part.logprobs],
        first_logprobs=[tensor for part in parts for tensor in part.first_logprobs],
        num_clipped=sum(part.num_clipped for part in parts),
        largest_log_ratio=max(part.largest_log_ratio for part in parts),
    )


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
        replace(current, advantages_N=own_N)
        for current, own_N in zip(sequences, torch.split(penalized_N, lengths), strict=True)
    ]


def _sampler_gap(logprobs: Sequence[Tensor]) -> SamplerGap | None:
    """The gap between learner and sampler, from [2, N] log-probs. None without tokens."""
    if not sum(part.shape[1] for part in logprobs):
        return None
    learner_N, sampled_N = torch.cat([*logprobs], dim=1).double()
    gaps_N, weights_N = (learner_N - sampled_N).abs(), (learner_N - sampled_N).exp()
    share = weights_N.sum().square() / weights_N.square().sum() / len(weights_N)
    return SamplerGap(float(gaps_N.mean()), float(gaps_N.max()), float(share))


def _capped_share(trained: Sequence[TrainingSequence], cap: float | None) -> float | None:
    """Share of tokens whose importance weight is above the cap; None if nothing is weighted."""
    gaps = [
        item.learner_logprobs_N - item.sampled_logprobs_N
        for item in trained
        if item.learner_logprobs_N is not None
    ]
    if cap is None or not gaps:
        return None
    return float((torch.cat(gaps) > math.log(cap)).double().mean())


def _kl_policy_base(sequences: Sequence[TrainingSequence]) -> float | None:
    """Mean of log p_sampled - log p_base; None if not measured."""
    differences = [
        sequence.sampled_logprobs_N - sequence.base_logprobs_N
        for sequence in sequences
        if sequence.base_logprobs_N is not None
    ]
    return float(torch.cat(differences).mean()) if differences else None


def _after_update(passes: UpdatePasses, sequences: Sequence[TrainingSequence]) -> Tensor:
    """[2, N]: log-probs of every token under the updated network, and as sampled."""
    if not passes.settings.compute_post_kl or not sequences:
        return torch.zeros((2, 0))
    return torch.cat(passes.measure(sequences), dim=1)
