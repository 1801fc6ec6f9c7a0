"""Reads a log from some offsets to others, and stops waiting for a log that has gone silent."""

from collections.abc import Callable, Iterator, Mapping

from consumers.errors import UnreachableError
from consumers.log.reader import LogReader, LogRecord, TopicPartition

POLL_S = 1.0
SILENCE_LIMIT_S = 60.0
"""A log that returns nothing for so long, although it has more, counts as unreachable."""


def _nothing() -> None:
    pass


def read_until(
    reader: LogReader,
    starts: Mapping[TopicPartition, int],
    until: Mapping[TopicPartition, int],
    max_records: int,
    meanwhile: Callable[[], None] = _nothing,
) -> Iterator[list[LogRecord]]:
    """Every record between these offsets, some at a time, each partition in order.

    After each list `reader.positions()` is how far the log was read; a list is empty when only
    these moved, over offsets that hold no record. `meanwhile` is called before each poll.
    UnreachableError when the log does not answer for SILENCE_LIMIT_S.
    """
    behind = {at: offset for at, offset in starts.items() if offset < until[at]}
    if not behind:
        return
    reader.seek(behind)
    silence_s = 0.0
    while any(reader.positions()[at] < until[at] for at in behind):
        meanwhile()
        before = reader.positions()
        records = reader.poll(max_records, POLL_S)
        if reader.positions() == before:
            silence_s += POLL_S
            if silence_s > SILENCE_LIMIT_S:
                message = (
                    f"the log returned nothing for {SILENCE_LIMIT_S:.0f} s although it has more; is"
                    " it reachable?"
                )
                raise UnreachableError(message)
            continue
        silence_s = 0.0
        yield [
            record
            for record in records
            if record.offset < until[TopicPartition(record.topic, record.partition)]
        ]
