"""Offsets by time: a partition without a leader is never one without later records."""

from collections.abc import Mapping
from typing import NamedTuple

import pytest
from kafka import TopicPartition
from kafka.errors import KafkaTimeoutError

from schemas.kafka_times import offsets_at

FULL, EARLY, LEADERLESS = (TopicPartition("cua.rollouts", number) for number in range(3))
ENDS = {FULL: 7, EARLY: 5, LEADERLESS: 9}
FIRST = {FULL: 3, LEADERLESS: 4}
"""Of those that have a record as late as is asked for."""


class Found(NamedTuple):
    """As far as it is looked at."""

    offset: int


class Consumer:
    """Answers as kafka-python 3.0.12 does when a leader goes after the ends were asked for."""

    def __init__(self, returns_after: int | None) -> None:
        self._returns_after = returns_after
        self.num_asked = 0

    def end_offsets(self, places: list[TopicPartition], timeout_ms: int) -> dict[object, int]:
        """Everyone still had a leader."""
        assert timeout_ms == 100
        assert self.num_asked == 0
        return {at: ENDS[at] for at in places}

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout_ms: int
    ) -> dict[TopicPartition, Found | None]:
        """Leaves a leaderless partition out; of that one alone, waits for its leader."""
        assert timeout_ms == 100
        self.num_asked += 1
        has_leader = self._returns_after is not None and self.num_asked > self._returns_after
        known = set(times) - (set() if has_leader else {LEADERLESS})
        if not known:
            raise KafkaTimeoutError
        return {at: Found(FIRST[at]) if at in known & set(FIRST) else None for at in times}


def test_a_partition_without_later_records_is_at_its_end() -> None:
    assert offsets_at(Consumer(None), {FULL: 1, EARLY: 1}, 100) == {FULL: 3, EARLY: 5}


def test_a_partition_whose_leader_returns_is_waited_for() -> None:
    found = offsets_at(Consumer(1), dict.fromkeys(ENDS, 1), 100)
    assert found == {FULL: 3, EARLY: 5, LEADERLESS: 4}


def test_a_partition_whose_leader_stays_away_is_an_error() -> None:
    with pytest.raises(KafkaTimeoutError):
        offsets_at(Consumer(None), dict.fromkeys(ENDS, 1), 100)
