"""The LogWriter interface: appends records, and reads streams back to continue them.

Two implementations exist: `local.LocalLog` (the log itself on one machine, the spool in front of
Kafka) and `kafka.KafkaLog`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol


class Record(NamedTuple):
    """A serialised event and its destination."""

    topic: str
    """Full name, including the prefix."""
    key: str
    """The stream (`rollout/<uuid>`). All records of a stream are in one partition, in order."""
    value: bytes
    training: str | None = None
    """The training that the event names, "" for none. None if not given here and only the value
    tells."""


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class Coordinates(NamedTuple):
    """Where a record was appended."""

    topic: str
    partition: int
    offset: int


class RecordRefusedError(Exception):
    """The target does not accept a record of this size. Everything before it was appended."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index
        """Index of the refused record among those that were to be appended."""


class StreamSource(Protocol):
    """A log from which streams are read back."""

    def ends(self) -> dict[TopicPartition, int]:
        """Offset after the last record of every partition."""
        ...

    def read_streams(
        self, topic: str, keys: Collection[str], since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of several streams of one topic, each in order, from `since` to the end.

        The end is that at the time of the call. Makes one pass over each partition that holds any
        of them.
        """
        ...

    def read_topic(
        self, topic: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of every record of a topic, each partition in order; bounds as above."""
        ...


class LogWriter(StreamSource, Protocol):
    """Durable, ordered append. Called from one thread at a time."""

    @property
    def log_id(self) -> str:
        """The log's identity: the local file's own id, or Kafka's cluster id."""
        ...

    def append(self, records: Sequence[Record]) -> list[Coordinates]:
        """Append in order. Returns once all records are durable (fsync, or acks=all).

        After LogBrokenError or UnreachableError, any of them may be missing.
        """
        ...

    def close(self) -> None:
        """Release files and sockets. Idempotent."""
        ...
