"""A policy-gradient update whose minibatches are computed while rollouts still run.

Gradients are added up in the order of the minibatches, outside the network, so that it can be
sampled from between two parts; only `finish` changes weights. A mean is divided at the end, when
the number of tokens is known: the result is that of `update.policy_gradient` up to rounding.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from producer.algorithms.losses import UNDIVIDED, BatchSize, divisor
from producer.algorithms.settings import UpdateSettings
from producer.policy.compute_settings import Switch
from producer.policy.learner import Trajectory, UpdateResult
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.optimizer import optimizer_step
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.training_sequences import TrainingSequence, training_sequences
from producer.policy.torch_policy.update import Measured, update_result
from producer.policy.torch_policy.update_passes import UpdatePasses, part_by_part
from producer.seeds import derived_seed


class StreamedPolicyGradient:
    """A `StreamedUpdate` of the adapter; for one thread."""

    def __init__(
        self,
        network: Network,
        encoder: ScreenEncoder,
        optimizer: torch.optim.AdamW,
        settings: UpdateSettings,
        gradient_checkpointing: Switch,
        *,
        num_minibatches: int,
        on_finished: Callable[[], None],
    ) -> None:
        """`num_minibatches`: of an optimiser step. `on_finished` is called by `finish`."""
        self._passes = UpdatePasses(
            network,
            encoder,
            settings,
            None,
            network.trainable(),
            network.max_workers,
            gradient_checkpointing,
        )
        self._optimizer = optimizer
        self._num_minibatches = num_minibatches
        self._on_finished = on_finished
        self._queue: deque[Sequence[Trajectory]] = deque()
        self._parts: Iterator[None] | None = None
        """Of the minibatch under way."""
        self._measured: list[TrainingSequence] = []
        self._done = Measured()
        self._num_tokens = 0
        self._seconds = 0.0
        self._begin_step()

    def add(self, trajectories: Sequence[Trajectory]) -> None:
        """Queue the next minibatch."""
        self._queue.append(trajectories)

    def work(self) -> bool:
        """Compute one part, as many micro-batches as run at a time; False: there was none.

        The minibatches of a later optimiser step are not touched.
        """
        if self._parts is None:
            if not self._queue or self._num_computed == self._num_minibatches:
                return False
            self._parts = self._compute(self._queue.popleft())
        began_s = time.monotonic()
        if next(self._parts, _ENDED) is _ENDED:
            self._parts = None
            self._num_computed += 1
        self._seconds += time.monotonic() - began_s
        return True

    def finish(self) -> UpdateResult:
        """Compute the rest and take every optimiser step. Without a trained token none is taken."""
        while True:
            while self.work():
                pass
            began_s = time.monotonic()
            if self._size.num_tokens:
                self._step()
            self._seconds += time.monotonic() - began_s
            if not self._queue:
                break
            self._begin_step()
        result = update_result(
            self._passes,
            self._measured,
            self._done,
            num_tokens=self._num_tokens,
            began_s=time.monotonic(),
        )
        self._on_finished()
        return replace(result, seconds=self._seconds + result.seconds)

    def _begin_step(self) -> None:
        self._gradients: list[Tensor | None] = [None] * len(self._passes.parameters)
        self._loss = 0.0
        self._size = BatchSize(0, 0)
        self._num_computed = 0

    def _compute(self, trajectories: Sequence[Trajectory]) -> Iterator[None]:
        """One minibatch; at a `yield` nothing is under way in the network."""
        passes = self._passes
        sequences = training_sequences(trajectories, passes.network.device)
        if passes.settings.kl_penalty_coef != 0 and sequences:
            base = passes.base_logprobs(sequences)
            sequences = [
                replace(current, base_logprobs_N=base_N)
                for current, base_N in zip(sequences, base, strict=True)
            ]
            yield
        self._measured += sequences
        others = [sequence for sequence in sequences if not sequence.is_trained]
        for measured in passes.measure_in_parts(others, part_by_part):
            self._done.measure(measured)
            yield
        trained = [sequence for sequence in sequences if sequence.is_trained]
        num_steps, seed = len(self._done.losses), passes.settings.seed
        dropout_seed = derived_seed(seed, "dropout", num_steps, self._num_computed)
        for part in passes.parts(trained, part_by_part):
            for current in passes.backward(part, UNDIVIDED, dropout_seed):
                self._loss += self._done.add(current)
                self._gradients = [
                    _sum(before, own)
                    for before, own in zip(self._gradients, current.gradients, strict=True)
                ]
            yield
        self._size = BatchSize(
            self._size.num_tokens + sum(len(item.advantages_N) for item in trained),
            self._size.num_sequences + len(trained),
        )

    def _step(self) -> None:
        settings = self._passes.settings
        num = divisor(settings.loss_aggregation, self._size)
        for parameter, gradient in zip(self._passes.parameters, self._gradients, strict=True):
            parameter.grad = None if gradient is None else gradient / num
        self._done.losses.append(self._loss / num)
        self._done.gradient_norms.append(
            optimizer_step(
                self._optimizer,
                settings.learning_rate,
                settings.max_gradient_norm,
                settings.weight_decay,
            )
        )
        self._num_tokens += self._size.num_tokens


_ENDED = object()


def _sum(before: Tensor | None, own: Tensor | None) -> Tensor | None:
    """None where the loss does not depend on the parameter."""
    if before is None or own is None:
        return own if before is None else before
    return before + own
