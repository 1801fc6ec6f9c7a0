"""An outage: logged once, however many retries, and measured from the last success."""

import logging

import pytest

from consumers.projection.outage import Outage


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def outage(clock: Clock) -> Outage:
    return Outage(clock)


def test_pauses_grow_to_five_seconds_and_start_again_after_a_success(outage: Outage) -> None:
    assert [outage.failed("away") for _ in range(7)] == [0.2, 0.5, 1.0, 2.0, 5.0, 5.0, 5.0]
    outage.over()
    assert outage.failed("away") == 0.2


def test_an_outage_is_logged_when_it_begins_when_it_changes_and_when_it_is_over(
    outage: Outage, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    outage.over()
    assert caplog.messages == []
    for why in ("Kafka does not answer", *["Kafka refuses"] * 100):
        clock.now_s += 5
        outage.failed(why)
    outage.over()
    outage.over()
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", "Kafka does not answer; retrying until it works"),
        ("WARNING", "Kafka refuses; retrying until it works"),
        ("INFO", "works again after 505 s"),
    ]


def test_it_counts_from_the_last_success_and_not_from_the_first(
    outage: Outage, clock: Clock
) -> None:
    clock.now_s += 3600
    outage.over()
    clock.now_s += 7
    outage.failed("away")
    clock.now_s += 2
    outage.failed("away")
    assert outage.seconds == 9
