"""The interface LogReader: topics, partitions and offsets of any log.

Two implementations: `local.LocalLogReader` and `kafka.KafkaLogReader`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

LOOK_AT = "Look at KAFKA_BOOTSTRAP_SERVERS, CUA_TOPIC_PREFIX and CUA_HOME"
"""Advice where the configured log is hardly the one that is meant."""


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class LogRecord(NamedTuple):
    """One record of the log."""

    topic: str
    partition: int
    offset: int
    key: str | None
    value: bytes
    appended_at: datetime
    """UTC; never falls within a partition."""


class LastRecord(NamedTuple):
    """The last record of a partition that a reader has read."""

    next_offset: int
    """It is before this one; offsets between the two hold no record."""
    appended_at: datetime


class LogReader(Protocol):
    """Reads durable records; positions are the caller's, nothing is committed. Not thread-safe."""

    @property
    def kind(self) -> str:
        """`local` or `kafka`."""
        ...

    @property
    def log_id(self) -> str:
        """The log's identity; positions are valid only in one log."""
        ...

    @property
    def problem(self) -> str | None:
        """Why `poll` returns nothing although the log may have more; None: all is well."""
        ...

    def partitions(self) -> list[TopicPartition]:
        """Every partition of the installation's topics, sorted.

        Empty when nothing was ever written.
        """
        ...

    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """First offset of each."""
        ...

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Offset after the last record of each."""
        ...

    def offsets_for_time(
        self, partitions: Sequence[TopicPartition], time: datetime
    ) -> dict[TopicPartition, int]:
        """First offset appended at or after `time`; the end if there is none."""
        ...

    def replaced(self, last: Mapping[TopicPartition, LastRecord]) -> dict[TopicPartition, datetime]:
        """Partitions that have another record at the offset before `next_offset`, and its time.

        A log that was restored from an older state, and has grown since, has others there. Where
        it has no record at that offset there is no error. Call `seek` before the next `poll`.
        """
        ...

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions, from these offsets (the next to read), and no others."""
        ...

    def positions(self) -> dict[TopicPartition, int]:
        """The next offsets to read of the partitions that were sought.

        After the last record returned and every offset behind it that holds no record (transaction
        markers, compacted records).
        """
        ...

    def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
        """Up to `max_records` records, each partition in order.

        Waits up to `timeout_s` for the first; [] when none came.
        """
        ...

    def close(self) -> None:
        """Release files and sockets. Idempotent."""
        ...
