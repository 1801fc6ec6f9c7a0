"""Kafka's records as ours, whatever a stranger wrote: keys of any bytes, no value, any time."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from consumers.log.reader import LogRecord
from schemas.ids import EPOCH_START

LATEST = datetime(9999, 12, 31, tzinfo=UTC)
"""For times beyond the years that datetime has."""


def log_records(topic: str, partition: int, batch: Iterable[Any]) -> list[LogRecord]:
    """A partition's records; kafka-python ships no types."""
    return [
        LogRecord(
            topic,
            partition,
            record.offset,
            None if record.key is None else record.key.decode(errors="backslashreplace"),
            record.value or b"",
            append_time(record.timestamp),
        )
        for record in batch
    ]


def append_time(milliseconds: int | None) -> datetime:
    """A record's timestamp as UTC, at most the years that datetime has.

    A topic that is not ours may take the writer's time: any number, and -1 or None for no time.
    """
    try:
        return EPOCH_START + timedelta(milliseconds=max(milliseconds or 0, 0))
    except OverflowError:
        return LATEST
