"""An outage: said once, however often it is tried, and measured from the last thing that worked."""

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
def said() -> list[str]:
    return []


@pytest.fixture
def outage(clock: Clock, said: list[str]) -> Outage:
    return Outage(said.append, clock)


def test_pauses_grow_to_five_seconds_and_start_again_after_what_worked(outage: Outage) -> None:
    assert [outage.failed("away") for _ in range(7)] == [0.2, 0.5, 1.0, 2.0, 5.0, 5.0, 5.0]
    outage.over()
    assert outage.failed("away") == 0.2


def test_an_outage_is_said_when_it_begins_when_it_changes_and_when_it_is_over(
    outage: Outage, clock: Clock, said: list[str]
) -> None:
    outage.over()
    assert said == []
    for why in ("Kafka does not answer", *["Kafka refuses"] * 100):
        clock.now_s += 5
        outage.failed(why)
    outage.over()
    outage.over()
    assert said == [
        "Kafka does not answer; trying again until it works",
        "Kafka refuses; trying again until it works",
        "it works again after 505 s; going on",
    ]


def test_it_counts_from_the_last_thing_that_worked_and_not_from_the_first_that_did(
    outage: Outage, clock: Clock
) -> None:
    clock.now_s += 3600
    outage.over()
    clock.now_s += 7
    outage.failed("away")
    clock.now_s += 2
    outage.failed("away")
    assert outage.seconds == 9
