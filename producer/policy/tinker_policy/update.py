"""One policy-gradient update at the service, whose losses are sums over tokens, as is our default.

Axis: N completion tokens of all sequences.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import tinker
from numpy.typing import NDArray

from producer.algorithms.names import CLIPPED
from producer.algorithms.ratio_bounds import clip_of
from producer.algorithms.settings import UpdateSettings
from producer.errors import CuaTrainError
from producer.policy.learner import Trajectory, UpdateResult
from producer.policy.sequences import (
    Substep,
    TokenSequence,
    TrajectoryPart,
    split_into_substeps,
    trajectory_parts,
)
from producer.policy.tinker_policy.failures import failing_to
from producer.policy.tinker_policy.losses import policy_loss
from producer.policy.tinker_policy.policy_files import PolicyFiles
from producer.policy.tinker_policy.service import TinkerService

EPS: Final = 1e-8
"""Adam's epsilon, as in the in-process optimiser. Tinker's own default is 1e-12."""

Output = tinker.types.ForwardBackwardOutput
OutputFuture = tinker.APIFuture[Output]
OptimizerFuture = tinker.APIFuture[tinker.types.OptimStepResponse]


@dataclass(frozen=True, slots=True)
class _Requested:
    """Pending requests, in the order they were sent."""

    sequences: Sequence[TrajectoryPart]
    outputs: OutputFuture
    optimizer: OptimizerFuture | None
    """None if the sequences are only measured."""
    is_first: bool
    """Whether they belong to the first pass over the batch."""


def policy_gradient(
    service: TinkerService,
    client: tinker.TrainingClient,
    files: PolicyFiles,
    trajectories: Sequence[Trajectory],
    settings: UpdateSettings,
) -> UpdateResult:
    """Train on the trajectories marked for training, and measure all of them.

    Substeps, their order and the time of each measurement match the in-process update. All requests
    are sent before the first answer is awaited, because the service computes in rounds. Without
    completion tokens nothing is sent and the result's means are NaN. Raises as
    `TinkerService.wait`, and CuaTrainError for a loss that is not finite; the previous state is
    kept.
    """
    began_s = time.monotonic()
    parts = list(trajectory_parts(trajectories))
    trained = [part for part in parts if trajectories[part.trajectory].is_trained]
    others = [part for part in parts if not trajectories[part.trajectory].is_trained]
    with failing_to("train", service.key):
        requested: list[_Requested] = []
        for substep in split_into_substeps(trained, others, settings):
            if substep.measured:
                requested.append(_measure(client, files, substep.measured))
            if substep.trained:
                requested.append(_train(client, files, substep, settings))
        answers = [(item, service.wait(item.outputs, "train")) for item in requested]
        norms = [
            _gradient_norm(service.wait(item.optimizer, "train").metrics)
            for item in requested
            if item.optimizer is not None
        ]
    losses = [
        (_loss(item.sequences, answer, settings), item.is_first)
        for item, answer in answers
        if item.optimizer is not None
    ]
    trained_N, sampled_N = _logprobs(answers)
    difference_N = sampled_N - trained_N
    num_tokens = sum(len(item.advantages) for item in trained)
    return UpdateResult(
        loss=sum(loss for loss, _ in losses),
        loss_per_token=sum(loss for loss, is_first in losses if is_first) / max(1, num_tokens),
        kl_sample_train_v1=_mean(difference_N),
        kl_sample_train_v2=_mean(0.5 * difference_N**2),
        entropy=_mean(-sampled_N),
        gradient_norm=sum(norms) / max(1, len(norms)),
        num_tokens=num_tokens,
        num_measured_tokens=len(sampled_N),
        seconds=time.monotonic() - began_s,
    )


def _measure(
    client: tinker.TrainingClient, files: PolicyFiles, sequences: Sequence[TrajectoryPart]
) -> _Requested:
    data = [measuring_datum(files, item) for item in sequences]
    outputs = client.forward(data, "cross_entropy")
    return _Requested(sequences, outputs, None, is_first=True)


def _train(
    client: tinker.TrainingClient,
    files: PolicyFiles,
    substep: Substep[TrajectoryPart],
    settings: UpdateSettings,
) -> _Requested:
    data = [policy_gradient_datum(files, item) for item in substep.trained]
    assert settings.loss_fn in {"importance_sampling", "ppo", "cispo"}  # noqa: S101  # configured
    outputs = client.forward_backward(data, settings.loss_fn, _clip(settings))
    adam = tinker.AdamParams(
        learning_rate=settings.learning_rate,
        eps=EPS,
        weight_decay=settings.weight_decay,
        grad_clip_norm=settings.max_gradient_norm or 0.0,
    )
    return _Requested(substep.trained, outputs, client.optim_step(adam), substep.is_first)


def _clip(settings: UpdateSettings) -> dict[str, float | str] | None:
    """Bounds of the probability ratio; the service's own differ for cispo."""
    if settings.loss_fn not in CLIPPED:
        return None
    clip = clip_of(settings)
    return {"clip_low_threshold": 1 - clip.low, "clip_high_threshold": 1 + clip.high}


def _loss(sequences: Sequence[TrajectoryPart], answer: Output, settings: UpdateSettings) -> float:
    """Loss of one pass, summed over its tokens. Raises CuaTrainError if it is not finite."""
    loss = sum(
        policy_loss(
            settings,
            logprobs_N(sequence, output),
            np.asarray(sequence.tokens.sampled_logprobs, np.float64),
            np.asarray(sequence.advantages, np.float64),
        )
        for sequence, output in zip(sequences, answer.loss_fn_outputs, strict=True)
    )
    if not math.isfinite(loss):
        message = (
            f"the update's loss is {loss}, which is not finite; lower learning_rate or the size of"
            " the rewards and run again (the state before the step is kept), or begin another"
            " training"
        )
        raise CuaTrainError(message)
    return float(loss)


def _gradient_norm(metrics: Mapping[str, float] | None) -> float:
    """The gradient norm an optimiser step reports, such as `grad_norm:mean`; NaN if absent."""
    for name, value in (metrics or {}).items():
        if "grad" in name and ("norm" in name or "l2" in name):
            return float(value)
    return math.nan


def _logprobs(
    answers: Sequence[tuple[_Requested, Output]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """[N], [N]: current and sampled log-probs, from the first pass over the batch."""
    current, sampled = [np.zeros(0)], [np.zeros(0)]
    for item, answer in answers:
        if not item.is_first:
            continue
        for sequence, output in zip(item.sequences, answer.loss_fn_outputs, strict=True):
            current.append(logprobs_N(sequence, output))
            sampled.append(np.asarray(sequence.tokens.sampled_logprobs))
    return np.concatenate(current), np.concatenate(sampled)


def _mean(numbers_N: NDArray[np.float64]) -> float:
    return float(numbers_N.mean()) if len(numbers_N) else math.nan


Chunk = tinker.EncodedTextChunk | tinker.types.ImageChunk


def model_input(files: PolicyFiles, tokens: TokenSequence) -> tinker.ModelInput:
    """The sequence with its screens; a placeholder that was sampled remains a token."""
    sampled = set(tokens.sampled_at)
    screens = iter(tokens.screenshots)
    chunks: list[Chunk] = []
    text: list[int] = []
    at = 0
    while at < len(tokens.tokens):
        if tokens.tokens[at] != files.image_token or at in sampled:
            text.append(tokens.tokens[at])
            at += 1
            continue
        if text:
            chunks.append(tinker.EncodedTextChunk(tokens=text))
            text = []
        screen = next(screens)
        num_tokens = files.num_image_tokens(screen)
        chunks.append(
            tinker.types.ImageChunk(data=screen.png, format="png", expected_tokens=num_tokens)
        )
        at += num_tokens
    if text:
        chunks.append(tinker.EncodedTextChunk(tokens=text))
    return tinker.ModelInput(chunks=list(chunks))


def policy_gradient_datum(files: PolicyFiles, sequence: TrajectoryPart) -> tinker.Datum:
    """For losses that take sampled log-probs and advantages; both are 0 on prompt tokens."""
    size = len(sequence.tokens.tokens) - 1
    logprobs, advantages = np.zeros(size, np.float32), np.zeros(size, np.float32)
    logprobs[_at(sequence)] = sequence.tokens.sampled_logprobs
    advantages[_at(sequence)] = sequence.advantages
    return tinker.Datum(
        model_input=_without_last(files, sequence.tokens),
        loss_fn_inputs={
            "target_tokens": _tensor(np.asarray(sequence.tokens.tokens[1:], np.int64)),
            "logprobs": _tensor(logprobs),
            "advantages": _tensor(advantages),
        },
    )


def measuring_datum(files: PolicyFiles, sequence: TrajectoryPart) -> tinker.Datum:
    """For cross_entropy with weights of 0, because only log-probs are needed."""
    size = len(sequence.tokens.tokens) - 1
    return tinker.Datum(
        model_input=_without_last(files, sequence.tokens),
        loss_fn_inputs={
            "target_tokens": _tensor(np.asarray(sequence.tokens.tokens[1:], np.int64)),
            "weights": _tensor(np.zeros(size, np.float32)),
        },
    )


def logprobs_N(sequence: TrajectoryPart, output: tinker.types.LossFnOutput) -> NDArray[np.float64]:
    """[N]: log-prob of each completion token from the service. Raises CuaTrainError if missing."""
    found = output.get("logprobs")
    if found is None:
        names = ", ".join(sorted(output)) or "nothing"
        message = (
            f"Tinker's answer to a training request has {names} but no logprobs; use a service"
            " that returns logprobs"
        )
        raise CuaTrainError(message)
    every: NDArray[np.float64] = found.to_numpy().astype(np.float64)
    return every[_at(sequence)]


def _tensor(numbers: NDArray[Any]) -> tinker.TensorData:
    return tinker.TensorData.from_numpy(numbers)


def _at(sequence: TrajectoryPart) -> NDArray[np.int64]:
    """Indices of the completion tokens in the targets, which lack the first token."""
    return np.asarray(sequence.tokens.sampled_at, np.int64) - 1


def _without_last(files: PolicyFiles, tokens: TokenSequence) -> tinker.ModelInput:
    # The last token belongs to a completion, so it is a target but not an input.
    size = len(tokens.tokens) - 1
    inputs = [at for at in tokens.sampled_at if at < size]
    return model_input(files, TokenSequence(tokens.tokens[:size], tokens.screenshots, inputs))
