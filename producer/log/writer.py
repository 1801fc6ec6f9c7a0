"""The interface LogWriter: where the emitter's background thread puts records, and where a resuming writer reads its streams back.

Two implementations: `local.LocalLog` (the log itself on one machine, and the spool in front of Kafka) and `kafka.KafkaLog`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol


class Record(NamedTuple):
    """What is appended."""

    topic: str
    """Full name, prefix included."""
    key: str
    """The stream (`rollout/<uuid>`): one stream lies in one partition, in order."""
    value: bytes


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class Coordinates(NamedTuple):
    """Where a record came to lie."""

    topic: str
    partition: int
    offset: int


class LogWriter(Protocol):
    """Durable, ordered append. Called from one thread at a time."""

    @property
    def log_id(self) -> str:
        """The log's identity: the local file's own, or Kafka's cluster id."""
        ...

    def append(self, records: Sequence[Record]) -> list[Coordinates]:
        """Append in the order given; returns once all are durable (fsync, or acks=all).

        LogBrokenError: none is promised.
        """
        ...

    def ends(self) -> dict[TopicPartition, int]:
        """Offset after the last record of every partition; a lower bound to keep in a manifest."""
        ...

    def read_streams(
        self, topic: str, keys: Collection[str], since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of several streams of one topic, each in order.

        One pass over each partition that they lie in.
        """
        ...

    def read_topic(
        self, topic: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of every record of a topic, each partition in order, from `since` to the end at call."""
        ...

    def close(self) -> None:
        """Release files and sockets; twice is once."""
        ...
