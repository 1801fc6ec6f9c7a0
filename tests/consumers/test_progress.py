"""A long replay says how far it is, how fast it goes and how long it still takes."""

import logging
import sys

import pytest

from consumers.progress import ReplayProgress


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_without_a_terminal_a_line_every_ten_seconds_has_rate_and_time_left(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with ReplayProgress(1_000_000, clock=clock, is_terminal=False) as progress:
        for seconds in range(22):
            clock.now_s = float(seconds)
            progress.advance_to(seconds * 10_000)

    assert caplog.messages == [
        "replayed 100,000 of 1,000,000 records (10 %), 10,000/s, 90 s left",
        "replayed 200,000 of 1,000,000 records (20 %), 10,000/s, 80 s left",
    ]


def test_the_rate_counts_from_where_it_began(clock: Clock) -> None:
    progress = ReplayProgress(10_000, verb="applied", clock=clock, is_terminal=False)
    progress.advance_to(9_000)
    clock.now_s = 2.0
    progress.advance_to(9_500)

    assert progress.describe() == "applied 9,500 of 10,000 records (95 %), 250/s, 2 s left"


def test_a_total_that_grows_is_followed_and_long_times_are_told_in_larger_units(
    clock: Clock,
) -> None:
    progress = ReplayProgress(100, clock=clock, is_terminal=False)
    progress.advance_to(0)
    clock.now_s = 1.0
    progress.advance_to(10, 40_010)

    assert progress.describe().endswith("(0 %), 10/s, 1 h 6 min left")


def test_a_terminal_shows_a_bar_on_stderr_and_no_lines(
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with ReplayProgress(1_000, clock=clock, is_terminal=True) as progress:
        for seconds in range(20):
            clock.now_s = float(seconds)
            progress.advance_to(seconds * 50)

    printed = capsys.readouterr()
    assert sys.stderr is not None
    assert printed.out == ""
    assert "1000" in printed.err.replace(",", "")
    assert "left" in printed.err
    assert caplog.messages == []


def test_quiet_says_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("consumers").setLevel(logging.WARNING)
    with ReplayProgress(1_000, clock=clock, is_terminal=True) as progress:
        for seconds in range(20):
            clock.now_s = float(seconds)
            progress.advance_to(seconds * 50)

    assert capsys.readouterr() == ("", "")
