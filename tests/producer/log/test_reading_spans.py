"""Ranges of offsets are read with little of what lies behind them."""

from typing import NamedTuple

from producer.log.kafka_reading import read_spans


class Read(NamedTuple):
    """A record, as far as a range is concerned."""

    offset: int


class LongLog:
    """A consumer of endless partitions, of which one answers at a time; counts what it decodes."""

    def __init__(self) -> None:
        self.num_decoded = 0
        self._positions: dict[str, int] = {}
        self._paused: set[str] = set()

    def assign(self, partitions: list[str]) -> None:
        """Nothing is known of them before `seek`."""
        self._positions = dict.fromkeys(partitions, -1)

    def seek(self, at: str, offset: int) -> None:
        """The next record."""
        self._positions[at] = offset

    def position(self, at: str) -> int:
        """The next record's offset."""
        return self._positions[at]

    def pause(self, at: str) -> None:
        """It answers no more."""
        self._paused.add(at)

    def poll(self, timeout_ms: int, max_records: int) -> dict[str, list[Read]]:
        """As many as are asked for."""
        assert timeout_ms > 0
        assert max_records > 0
        at = next(position for position in self._positions if position not in self._paused)
        start = self._positions[at]
        self._positions[at] = start + max_records
        self.num_decoded += max_records
        return {at: [Read(offset) for offset in range(start, start + max_records)]}


def test_of_two_short_ranges_far_apart_hardly_more_than_them_is_decoded() -> None:
    log = LongLog()
    spans = {"a": [range(128, 256), range(900_000, 900_100)], "b": [range(50)]}
    found = {at: set[int]() for at in spans}
    for at, records in read_spans(log, spans, 5.0):
        found[at].update(record.offset for record in records)
    assert found == {"a": {*range(128, 256), *range(900_000, 900_100)}, "b": set(range(50))}
    assert log.num_decoded == 128 + 100 + 50
