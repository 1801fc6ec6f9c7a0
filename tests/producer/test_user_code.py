"""A user's reward code: whatever it does, it gives a finite number or a sentence with its name."""

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest

from producer.rewards.user_code import MAX_REWARD, RewardError, UserCode, finite_number

NAME = "the reward function mine"


class Unreadable:
    """Says that it has an item, and has none."""

    def item(self) -> float:
        raise RuntimeError

    def __repr__(self) -> str:
        return "Unreadable()"  # a test's name is the same in every process


@pytest.fixture
def waiting() -> Iterator[threading.Event]:
    """Set when the test is over, so that no thread of it hangs on."""
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1.0),
        (True, 1.0),
        (Fraction(1, 4), 0.25),
        (np.float32(0.5), 0.5),
        (np.array([2.0]), 2.0),
        (-MAX_REWARD, -1e12),
    ],
)
def test_a_number_is_taken_and_an_array_of_one_too(value: object, expected: float) -> None:
    found = finite_number(value, NAME)
    assert (found, type(found)) == (expected, float)


@pytest.mark.parametrize(
    "value",
    [
        "1",
        None,
        1j,
        [1.0],
        {"score": 1.0},
        float("nan"),
        float("-inf"),
        np.array(np.nan),
        np.array([1.0, 2.0]),
        np.str_("1"),
        1.1 * MAX_REWARD,
        10**400,
        Unreadable(),
    ],
    ids=repr,
)
def test_what_is_no_finite_number_is_refused_with_the_code_s_name(value: object) -> None:
    with pytest.raises(RewardError, match=f"^{NAME} returned .*; it must return a finite number"):
        finite_number(value, NAME)


def test_a_message_shows_the_beginning_of_a_long_value() -> None:
    with pytest.raises(RewardError) as refused:
        finite_number("x" * 100_000, NAME)
    assert 200 < len(str(refused.value)) < 400


def test_a_tensor_of_one_number_is_taken_and_one_of_more_is_refused() -> None:
    torch = pytest.importorskip("torch")
    assert finite_number(torch.tensor([[0.5]], requires_grad=True), NAME) == 0.5
    with pytest.raises(RewardError, match=r"returned tensor\(\[1., 2.\]\)"):
        finite_number(torch.tensor([1.0, 2.0]), NAME)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KeyError("gold"), "raised KeyError: 'gold'"),
        (SystemExit(0), "raised SystemExit: 0"),
        (KeyboardInterrupt(), "raised KeyboardInterrupt: "),
    ],
)
def test_whatever_code_raises_is_a_reward_error_and_ends_nothing(
    error: BaseException, message: str
) -> None:
    def broken() -> float:
        raise error

    code = UserCode(NAME)
    place = r" \(.+test_user_code\.py line [0-9]+, in broken\)"
    with pytest.raises(RewardError, match=f"^{NAME} {message}{place}$"):
        code.call(broken)
    assert code.call(lambda: 2.0) == 2.0


def test_the_line_that_is_named_is_the_users_and_not_a_librarys() -> None:
    def parse() -> float:
        return float(json.loads("{"))

    line = parse.__code__.co_firstlineno + 1
    with pytest.raises(RewardError, match=rf"test_user_code\.py line {line}, in parse\)$"):
        UserCode(NAME).call(parse)


def test_a_call_that_hangs_fails_in_time_and_further_ones_at_once_until_it_returns(
    waiting: threading.Event,
) -> None:
    code = UserCode(NAME, limit_s=0.2)
    with pytest.raises(RewardError, match=f"^{NAME} did not return within 0.2 s$"):
        code.call(waiting.wait)
    begun_s = time.monotonic()
    for _ in range(1000):
        with pytest.raises(RewardError, match=f"^{NAME} still hangs in an earlier call"):
            code.call(lambda: 1.0)
    # A thousand calls that waited would take 200 s.
    assert time.monotonic() - begun_s < 100
    waiting.set()
    deadline_s = time.monotonic() + 60
    found: list[float] = []
    while not found:
        assert time.monotonic() < deadline_s
        with suppress(RewardError):
            found.append(code.call(lambda: 3.0))
    assert found == [3.0]


def test_all_calls_are_on_one_thread_and_one_at_a_time() -> None:
    """A connection of sqlite3 is refused by any thread but the one that made it."""
    code, inside = UserCode(NAME), threading.Lock()
    opened: list[sqlite3.Connection] = []

    def count() -> int:
        assert inside.acquire(blocking=False)
        if not opened:
            opened.append(sqlite3.connect(":memory:"))
        time.sleep(0.001)
        (number,) = opened[0].execute("SELECT 1").fetchone()
        inside.release()
        return int(number)

    found: list[int] = []
    add: Callable[[], None] = lambda: found.append(code.call(count))  # noqa: E731
    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [1] * 8
    code.call(opened[0].close)
