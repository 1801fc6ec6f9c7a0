"""A service that answers every request with 500 is not waited for without end.

The SDK fetches an answer again and again, without a word, as long as it gets 500.
"""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import pytest

pytest.importorskip("torch")

from producer.errors import StopRequestedError, UnreachableError
from producer.policy.compute_settings import PolicySettings
from producer.policy.learner import Trajectory
from producer.policy.policy import Completion
from producer.policy.tinker_policy.policy import TinkerPolicy
from producer.policy.tinker_policy.service import TinkerService, WaitLimits
from tests.producer.policy.conftest import SETTINGS, make_request, make_screen, trajectory
from tests.producer.tinker.opened import through_sdk
from tests.support.tinker_key import KEY
from tests.support.tinker_server import TinkerServer
from tests.support.turns import past_turn

pytestmark = [
    pytest.mark.usefixtures("sdk_connections"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.timeout(120),  # without a limit they would hang for the usual 300 s
]

LIMIT_S = 1.0
SOON_S = 10.0
"""The test's patience with one wait of `LIMIT_S`."""


Work = Callable[[TinkerPolicy, list[Trajectory], Path], object]
SHORT = WaitLimits(LIMIT_S, LIMIT_S, LIMIT_S, LIMIT_S)


@pytest.fixture
def server(small_policy: Path) -> Iterator[TinkerServer]:
    with TinkerServer([str(small_policy)]) as started:
        yield started


@pytest.fixture
def service(server: TinkerServer) -> TinkerService:
    """With the usual limits: what is done before the service breaks may take a while."""
    return TinkerService(KEY, server.url)


@pytest.fixture
def policy(small_policy: Path, server: TinkerServer, service: TinkerService) -> TinkerPolicy:
    return through_sdk(small_policy, server.url, service)


def break_down(server: TinkerServer, service: TinkerService) -> None:
    """From here on it answers 500, and waits are short."""
    service.limits = SHORT
    server.stand.is_broken = True


def sampled(policy: TinkerPolicy, episodes: tuple[int, ...] = (1, 2)) -> list[Completion]:
    return policy.sample([make_request(episode, make_screen(episode)) for episode in episodes])


def batch(policy: TinkerPolicy) -> list[Trajectory]:
    completion = sampled(policy)[0]
    assert completion.tokens is not None, completion.failure
    return [trajectory([past_turn(make_screen(1), completion.text, completion.tokens)], 1.0)]


def test_samples_fail_their_attempts_after_one_limit_for_all_of_them(
    policy: TinkerPolicy, server: TinkerServer, service: TinkerService
) -> None:
    assert all(completion.tokens for completion in sampled(policy))
    break_down(server, service)
    begun_s = monotonic()
    for completion in sampled(policy, tuple(range(1, 9))):
        assert completion.tokens is None
        assert f"Tinker at {server.url} did not sample within 1 s; check" in str(completion.failure)
    assert monotonic() - begun_s < SOON_S / 2, "eight samples wait as long as one"
    server.stand.is_broken = False
    service.limits = WaitLimits()
    assert all(completion.tokens for completion in sampled(policy)), "and it goes on afterwards"


@pytest.mark.parametrize(
    ("what", "work"),
    [
        ("train", lambda policy, trained, _folder: policy.update(trained, SETTINGS)),
        ("save the weights", lambda policy, _trained, folder: policy.save_state(folder)),
        ("save the weights", lambda policy, _trained, folder: policy.save_checkpoint(folder)),
    ],
    ids=["update", "state", "checkpoint"],
)
def test_an_update_or_a_save_is_given_up_and_the_message_says_what_to_do(
    policy: TinkerPolicy,
    server: TinkerServer,
    service: TinkerService,
    tmp_path: Path,
    what: str,
    work: Work,
) -> None:
    trained = batch(policy)
    break_down(server, service)
    begun_s = monotonic()
    with pytest.raises(UnreachableError, match=f"did not {what} within 1 s") as error:
        work(policy, trained, tmp_path)
    assert "run the same command later; it continues the training" in str(error.value)
    assert error.value.exit_code == 5
    assert KEY not in str(error.value)
    assert monotonic() - begun_s < SOON_S
    assert policy.version == 0


def test_new_weights_that_are_not_published_end_the_wait(
    policy: TinkerPolicy, server: TinkerServer, service: TinkerService
) -> None:
    break_down(server, service)
    with pytest.raises(UnreachableError, match="did not publish the weights within 1 s"):
        sampled(policy)


def test_an_adapter_that_is_neither_made_nor_restored_ends_the_wait(
    small_policy: Path, policy: TinkerPolicy, server: TinkerServer, service: TinkerService
) -> None:
    assert policy.version == 0, "the session is there"
    break_down(server, service)
    with pytest.raises(UnreachableError, match=r"did not make an adapter of .* within 1 s"):
        service.create(PolicySettings(str(small_policy), 2, 1))
    with pytest.raises(UnreachableError, match=r"did not load tinker://r/weights/n within 1 s"):
        service.restore("tinker://r/weights/n", with_optimizer=True)
    server.stand.is_broken = False
    for thread in threading.enumerate():
        if thread.name == "tinker":  # what was given up
            thread.join(30)


def test_a_stop_ends_a_wait_long_before_its_limit(small_policy: Path, server: TinkerServer) -> None:
    stop = threading.Event()
    limits = WaitLimits(stopped_s=LIMIT_S)
    service = TinkerService(KEY, server.url, stop=stop, limits=limits)
    policy = through_sdk(small_policy, server.url, service)
    trained = batch(policy)
    server.stand.is_broken = True
    timer = threading.Timer(0.2, stop.set)
    begun_s = monotonic()
    timer.start()
    with pytest.raises(StopRequestedError):
        policy.update(trained, SETTINGS)
    assert LIMIT_S <= monotonic() - begun_s < SOON_S
    timer.join()
    with pytest.raises(StopRequestedError):
        sampled(policy)


def test_by_default_a_wait_is_as_long_as_the_sdk_allows_a_sample() -> None:
    assert TinkerService(KEY, "http://127.0.0.1:9").limits == (60, 15 * 60, 2 * 3600 + 5 * 60, 10)
