"""A policy that is sampled from in the midst of its update: nothing changes but the order."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast
from uuid import UUID

import pytest

from producer.policy.compute_settings import ComputeSettings, Switch
from producer.policy.learner import LendingLearner, Trajectory
from producer.policy.policy import Completion, SampleRequest
from producer.policy.serialised import SerialisedLearner
from producer.policy.torch_policy import update_passes
from producer.policy.torch_policy.in_process import InProcessPolicy
from producer.policy.torch_policy.logprobs import micro_batches
from producer.policy.torch_policy.network import Network
from tests.support.update_settings import changed

from .conftest import SETTINGS, ClickOnly, are_equal, make_request, make_screen, weights

LIMIT_S = 20.0


@pytest.mark.parametrize("gradient_checkpointing", ["off", "on"])
@pytest.mark.parametrize("num_substeps", [1, 2])
@pytest.mark.parametrize("kl_penalty_coef", [0.0, 0.1])
def test_sampling_between_the_parts_of_an_update_changes_neither(
    network: Network,
    batch: list[Trajectory],
    monkeypatch: pytest.MonkeyPatch,
    gradient_checkpointing: Switch,
    num_substeps: int,
    kl_penalty_coef: float,
) -> None:
    # A micro-batch for each sequence.
    monkeypatch.setattr(update_passes, "micro_batches", partial(micro_batches, max_tokens=1))
    settings = changed(SETTINGS, num_substeps=num_substeps, kl_penalty_coef=kl_penalty_coef)
    given = [*batch, replace(batch[0], is_trained=False), replace(batch[1], is_trained=False)]
    compute = ComputeSettings(gradient_checkpointing=gradient_checkpointing)
    before = weights(network)

    def updated(lends: bool) -> tuple[list[Any], Any, list[Completion], list[Completion]]:
        for parameter, weight in zip(network.trainable(), before, strict=True):
            parameter.data.copy_(weight)
        policy = InProcessPolicy(network, ClickOnly(), compute=compute)
        asked = [make_request(50, make_screen(50)), make_request(51, make_screen(51))]
        expected = policy.sample(asked)
        lent: list[Completion] = []

        def lend() -> None:
            for request in asked:
                policy.forget(request.episode)
            lent.extend(policy.sample(asked))

        result = policy.update_in_parts(given, settings, lend if lends else None)
        return weights(network), replace(result, seconds=0.0), expected, lent

    alone, measured, _, _ = updated(lends=False)
    lending, also_measured, expected, lent = updated(lends=True)
    assert are_equal(alone, lending)
    assert not are_equal(before, lending)
    assert measured == also_measured
    assert len(lent) >= 2 * 2
    assert lent == expected * (len(lent) // 2)


def test_the_pass_that_importance_weights_take_is_interrupted_as_often_as_the_update_s_own(
    network: Network, batch: list[Trajectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(update_passes, "micro_batches", partial(micro_batches, max_tokens=1))
    policy = InProcessPolicy(network, ClickOnly())

    def num_lent(importance_cap: float | None) -> int:
        lent: list[None] = []
        settings = changed(SETTINGS, learning_rate=0.0, importance_cap=importance_cap)
        policy.update_in_parts(batch, settings, lambda: lent.append(None))
        return len(lent)

    assert num_lent(2.0) == 2 * num_lent(None) > 0


class Recorder:
    """Counts who is inside, and writes down in which order."""

    name, repeats_batches = "recorder", True

    def __init__(self) -> None:
        self.version = 0
        self.order: list[str] = []
        self.inside = self.most_inside = 0
        self.before_lending: Callable[[], None] = lambda: None

    def _enter(self, what: str) -> None:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        self.order.append(what)

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        self._enter("sample")
        self.inside -= 1
        return [Completion("", (), None) for _ in requests]

    def forget(self, episode: UUID) -> None:
        self.order.append(f"forget {episode.int}")

    def update(self, *_: object) -> Any:
        raise AssertionError

    def update_in_parts(self, _trajectories: Any, _settings: Any, lend: Any) -> Any:
        for _ in range(3):
            self._enter("part")
            self.inside -= 1
            self.before_lending()
            lend()
        self.version += 1

    def save_state(self, _folder: Any) -> None:
        self._enter("save")
        self.inside -= 1

    load_state = save_checkpoint = save_state


def request() -> SampleRequest:
    return make_request(1, make_screen(1))


def test_who_waits_to_sample_is_lent_the_policy_once_a_part_and_gets_the_version_before() -> None:
    recorder = Recorder()
    assert isinstance(recorder, LendingLearner)
    learner = SerialisedLearner(cast("Any", recorder))
    got: list[int | None] = []

    def sample_twice() -> None:
        got.append(learner.sample([request()])[0].policy_version)
        got.append(learner.sample([request()])[0].policy_version)

    thread = threading.Thread(target=sample_twice, daemon=True)

    def wait_for_sampler() -> None:
        if not thread.ident:
            thread.start()
        for _ in range(int(LIMIT_S * 100)):
            if learner._num_waiting or not thread.is_alive():
                return
            threading.Event().wait(0.01)
        pytest.fail("nobody waits to sample")

    recorder.before_lending = wait_for_sampler
    learner.update([], SETTINGS)
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    assert recorder.order == ["part", "sample", "part", "sample", "part"]
    assert recorder.most_inside == 1
    assert got == [0, 0]
    assert learner.sample([request()])[0].policy_version == 1


def test_an_episode_is_forgotten_before_the_next_call_and_never_during_one() -> None:
    recorder = Recorder()
    learner = SerialisedLearner(cast("Any", recorder))
    recorder.before_lending = lambda: learner.forget(UUID(int=7))
    learner.update([], SETTINGS)
    assert recorder.order == ["part"] * 3
    learner.sample([request()])
    assert recorder.order[3:] == ["forget 7"] * 3 + ["sample"]


def test_a_policy_that_fails_can_be_called_again() -> None:
    recorder = Recorder()
    learner = SerialisedLearner(cast("Any", recorder))

    def fail() -> None:
        message = "no memory left"
        raise OSError(message)

    recorder.before_lending = fail
    with pytest.raises(OSError, match="no memory left"):
        learner.update([], SETTINGS)
    assert learner.sample([request()])[0].policy_version == 0
    assert learner.repeats_batches is False
