"""Distributes work through a Kafka topic: one process sends, members of a consumer group receive.

Imports no kafka: clients are kafka-python's, created by `producer.log.kafka_client`.
"""

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from producer.log.kafka_client import (
    KafkaClients,
    KafkaError,
    KafkaPartition,
    OffsetAndMetadata,
    RebalanceInProgressError,
    close_producer,
    create_topics,
    keep_joining,
)

DAY_MS: Final = 24 * 60 * 60 * 1000
SETTINGS: Final = {"retention.ms": str(DAY_MS), "cleanup.policy": "delete"}
SEND_TIMEOUT_S: Final = 30.0
SESSION_MS: Final = 10_000
"""A member that is silent for this long counts as dead, and others get its partitions."""
MAX_POLL_MS: Final = 5 * 60 * 1000
"""A member that does not poll for this long counts as hung, and another gets its partitions."""


def ensure_topic(clients: KafkaClients, topic: str, num_partitions: int) -> int:
    """Create the topic if it is missing.

    Returns its number of partitions. Raises UnreachableError.
    """
    with clients.admin() as admin:
        create_topics(admin, [topic], num_partitions, SETTINGS)
        (described,) = admin.describe_topics([topic])
    return len(described["partitions"])


def member_names(clients: KafkaClients, group: str) -> frozenset[str]:
    """Names of the group's live members. Raises UnreachableError."""
    with clients.admin() as admin:
        described = admin.describe_groups([group])
    members = described[group]["members"] if group in described else []
    return frozenset(str(member["client_id"]) for member in members)


class WorkSender:
    """Sends to chosen partitions of a topic. Not thread-safe. `close` is idempotent."""

    def __init__(self, clients: KafkaClients, topic: str, num_partitions: int) -> None:
        """Create the topic with `num_partitions` if it is missing. Raises UnreachableError."""
        self._clients = clients
        self._topic = topic
        self.num_partitions = ensure_topic(clients, topic, num_partitions)
        self._producer: Any = clients.producer()

    def send(self, partition: int, key: str, value: bytes) -> None:
        """Send a record and wait until all in-sync replicas have it. Raises UnreachableError."""
        try:
            if self._producer is None:
                self._producer = self._clients.producer()
            future = self._producer.send(self._topic, value, key.encode(), partition=partition)
            self._producer.flush(SEND_TIMEOUT_S)
            future.get(timeout=SEND_TIMEOUT_S)
        except KafkaError as error:
            # The producer may still hold the record, which would then be sent twice.
            self.close()
            raise self._clients.unreachable(error, "did not acknowledge an assignment") from error

    def close(self) -> None:
        """Close the connection."""
        producer, self._producer = self._producer, None
        if producer is not None:
            close_producer(producer)


@dataclass(slots=True)
class _Taken:
    """The records of one partition that this member has taken."""

    next_offset: int
    """Offset after the last record taken."""
    under_way: set[int] = field(default_factory=set)
    is_changed: bool = False
    """Whether any work ended since the last commit."""

    @property
    def done_to(self) -> int:
        """The offset below which all work has ended."""
        return min(self.under_way, default=self.next_offset)


@dataclass(frozen=True, slots=True)
class Work:
    """One record to work on."""

    partition: int
    offset: int
    value: bytes
    may_have_begun: bool
    """Whether another member may have begun it, because it is older than this member's
    assignment."""


class WorkMember:
    """One member of the group. For one thread, which must call `poll` continually.

    A record is committed once its work, and that of all earlier records in its partition, has
    ended. Until then it is delivered again if its member dies or its partition moves to another
    member.
    """

    def __init__(
        self, clients: KafkaClients, topic: str, group: str, num_partitions: int, name: str
    ) -> None:
        """Join the group under this name, creating the topic if it is missing.

        Raises UnreachableError.
        """
        ensure_topic(clients, topic, num_partitions)
        self._clients = clients
        self._topic = topic
        self._taken: dict[int, _Taken] = {}
        self._ends: dict[int, int] = {}
        """Maps a partition to its end offset when it was assigned."""
        self._consumer = clients.group_consumer(
            topic,
            self._on_revoked,
            group_id=group,
            client_id=name,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=SESSION_MS // 3,
            max_poll_interval_ms=MAX_POLL_MS,
        )
        self._is_paused = False

    @property
    def partitions(self) -> frozenset[int]:
        """The partitions that this member has."""
        return frozenset(at.partition for at in self._consumer.assignment())

    def poll(self, max_records: int, timeout_s: float) -> list[Work]:
        """Up to `max_records` records; 0 only keeps the membership alive.

        Raises UnreachableError.
        """
        try:
            self._pause(is_paused=max_records == 0)
            keep_joining(self._consumer)
            polled = self._consumer.poll(
                timeout_ms=int(timeout_s * 1000), max_records=max(1, max_records)
            )
            return [work for at, records in polled.items() for work in self._take(at, records)]
        except KafkaError as error:
            raise self._clients.unreachable(error, "did not answer") from error

    def _pause(self, *, is_paused: bool) -> None:
        assigned = self._consumer.assignment()
        if is_paused:
            self._consumer.pause(*assigned)
        elif self._is_paused:
            self._consumer.resume(*assigned)
        self._is_paused = is_paused

    def _take(self, at: Any, records: Collection[Any]) -> Iterator[Work]:  # noqa: ANN401  # kafka-python's
        if at.partition not in self._ends:
            self._ends[at.partition] = int(self._consumer.end_offsets([at])[at])
        for record in records:
            taken = self._taken.setdefault(at.partition, _Taken(record.offset))
            taken.next_offset = record.offset + 1
            taken.under_way.add(record.offset)
            may_have_begun = record.offset < self._ends[at.partition]
            yield Work(at.partition, record.offset, record.value or b"", may_have_begun)

    def ended(self, work: Work) -> None:
        """Mark the work as ended; `commit` tells the group."""
        taken = self._taken.get(work.partition)
        if taken is not None:
            taken.under_way.discard(work.offset)
            taken.is_changed = True

    def commit(self) -> None:
        """Commit the work that has ended. After UnreachableError, call it again."""
        changed = {number: taken for number, taken in self._taken.items() if taken.is_changed}
        if not changed:
            return
        offsets = {
            KafkaPartition(self._topic, number): OffsetAndMetadata(taken.done_to, "", -1)
            for number, taken in changed.items()
        }
        try:
            self._consumer.commit(offsets)
        except RebalanceInProgressError:
            return  # committed the next time
        except KafkaError as error:
            raise self._clients.unreachable(error, "did not take a commit") from error
        for taken in changed.values():
            taken.is_changed = False

    def _on_revoked(self, partitions: Collection[int]) -> None:
        """Handle a rebalance. Must not block kafka-python."""
        for number in partitions:
            self._taken.pop(number, None)
            self._ends.pop(number, None)

    def close(self) -> None:
        """Leave the group. Idempotent."""
        with contextlib.suppress(KafkaError):
            self._consumer.close(autocommit=False)


class FollowedTopic:
    """Follows a topic as it grows. For one thread. `close` is idempotent."""

    def __init__(self, clients: KafkaClients, since: Mapping[Any, int]) -> None:
        """`since` maps every partition to the offset to begin at. Raises UnreachableError."""
        self._clients = clients
        self._positions = {KafkaPartition(at.topic, at.partition): to for at, to in since.items()}
        self._stack = contextlib.ExitStack()
        self._consumer: Any = None

    def poll(self, timeout_s: float) -> list[tuple[str, bytes]]:
        """(key, value) of the following records, each partition in order.

        Raises UnreachableError.
        """
        try:
            if self._consumer is None:
                self._open()
            polled = self._consumer.poll(timeout_ms=int(timeout_s * 1000), max_records=5000)
        except KafkaError as error:
            self.close()
            time.sleep(timeout_s)
            raise self._clients.unreachable(error, "did not answer") from error
        found = []
        for at, records in polled.items():
            for record in records:
                found.append(((record.key or b"").decode(errors="replace"), record.value or b""))
                self._positions[at] = record.offset + 1
        return found

    def _open(self) -> None:
        consumer = self._stack.enter_context(self._clients.consumer())
        consumer.assign(list(self._positions))
        for at, offset in self._positions.items():
            consumer.seek(at, offset)
        self._consumer = consumer

    def close(self) -> None:
        """Close the connection. `poll` opens a new one."""
        self._consumer = None
        self._stack.close()
