"""A recorded first step replayed in this process, as if its rollouts had been sampled here."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from producer.algorithms.settings import UpdateSettings
from producer.blobs import open_blobs
from producer.codecs.compact import CompactCodec
from producer.config import read_config
from producer.emit import Emitter
from producer.policy.learner import TokenNumbers, Trajectory, UpdateResult
from producer.policy.policy import Turn
from producer.policy.sequences import join_turns
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.loading import load_network
from producer.policy.torch_policy.logprobs import completion_states, state_logprobs
from producer.resume.recorded_training import read_recorded_training
from producer.resume.run_folder import find_run_folder
from producer.training.recorded_updates import redo_steps
from schemas.installation import Installation

MAX_LOSS_CHANGE = 1e-4
"""Of a token's loss."""


class Replay(NamedTuple):
    """What the record says of the step, and what this process computes from its rollouts."""

    recorded_advantages: list[float | TokenNumbers]
    advantages: list[float | TokenNumbers]
    """Computed again from the rewards, in the same order."""
    recorded: UpdateResult
    """With the sampler's log-probs."""
    own: UpdateResult
    """With log-probs of this process in their place."""
    largest_change: float
    """Of a log-prob, nats."""


def assert_sampled_as_here(replay: Replay) -> None:
    """The same advantages and, within 1e-4 a token, losses as with the log-probs of this process.

    Also that both were computed, from rollouts that a gradient came of.
    """
    assert replay.advantages == replay.recorded_advantages
    assert any(replay.advantages)
    assert replay.own.num_tokens == replay.recorded.num_tokens > 0
    assert replay.recorded.gradient_norm > 0
    assert replay.largest_change > 0, "the log-probs of the record were kept"
    assert replay.own.loss_per_token == pytest.approx(
        replay.recorded.loss_per_token, rel=0, abs=MAX_LOSS_CHANGE
    )
    allowed = MAX_LOSS_CHANGE * replay.own.num_tokens
    assert replay.own.loss == pytest.approx(replay.recorded.loss, rel=0, abs=allowed)


class _Replaying(InProcessPolicy):
    """Notes what it is trained on; `samples_itself`: with its own log-probs of the tokens."""

    samples_itself = False
    largest_change = 0.0
    trained: Sequence[Trajectory] = ()

    def update(self, trajectories: Sequence[Trajectory], settings: UpdateSettings) -> UpdateResult:
        self.trained = trajectories
        if self.samples_itself:
            trajectories = [
                replace(one, turns=self._sampled_here(one.turns, settings.temperature))
                for one in trajectories
            ]
        return super().update(trajectories, settings)

    @torch.no_grad()
    def _sampled_here(self, turns: Sequence[Turn], temperature: float) -> tuple[Turn, ...]:
        sequences = join_turns((turn.screenshot, turn.tokens) for turn in turns)
        logprobs = []
        for sequence in sequences:
            states = completion_states(self._network, self._encoder, [[sequence]])
            logprobs += state_logprobs(self._network, states, temperature).tolist()
        recorded = [one for sequence in sequences for one in sequence.sampled_logprobs]
        changes = [abs(own - was) for own, was in zip(logprobs, recorded, strict=True)]
        self.largest_change = max([self.largest_change, *changes])
        left = iter(logprobs)
        replayed = []
        for turn in turns:
            own = tuple(next(left) for _ in turn.tokens.completion_tokens)
            tokens = replace(turn.tokens, completion_logprobs=own)
            replayed.append(replace(turn, completion=replace(turn.completion, tokens=tokens)))
        return tuple(replayed)


def replay_first_step(installation: Installation, training_name: str, folder: Path) -> Replay:
    """Replay step 1, whose adapter is still without effect; `folder`: that of the base policy."""
    stop = threading.Event()
    run_folder = find_run_folder(installation, training_name)
    with Emitter.open(installation, stop=stop) as emitter:
        recorded = read_recorded_training(emitter, training_name, run_folder, stop)
        whole = recorded.read_whole(emitter.log)
    config = read_config(recorded.history.newest_configuration.config)
    step = whole.lineage.steps[1]
    read_blob = open_blobs(installation).get

    def replayed(*, samples_itself: bool) -> tuple[_Replaying, UpdateResult]:
        network = load_network(str(folder), config.lora_rank, config.seed)
        learner = _Replaying(network, CompactCodec())
        learner.samples_itself = samples_itself
        control = config if samples_itself else None  # computes the advantages again
        (redone,) = redo_steps(whole, config.sampled_here(), learner, [step], read_blob, control)
        return learner, redone.update

    as_recorded, with_recorded = replayed(samples_itself=False)
    here, with_own = replayed(samples_itself=True)
    return Replay(
        [one.advantage for one in as_recorded.trained],
        [one.advantage for one in here.trained],
        with_recorded,
        with_own,
        here.largest_change,
    )
