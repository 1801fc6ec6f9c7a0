"""The log on many machines: Apache Kafka.

Owns creating topics, an idempotent producer, and reading streams back. Does not know the spool and
the shipper in front of it.
"""

import contextlib
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from producer.errors import UnreachableError
from producer.log.assigned_partitions import AssignedPartitions
from producer.log.kafka_client import (
    CONNECT_TIMEOUT_S,
    SIZE_ERRORS,
    ConfigResource,
    KafkaClients,
    KafkaError,
    KafkaPartition,
    KafkaTimeoutError,
    TopicAlreadyExistsError,
    close_producer,
    topic_ids,
)
from producer.log.kafka_partitions import (
    assigned_partitions,
    may_have_grown,
    spans_to_read,
)
from producer.log.kafka_reading import bounds, first_keys, read_spans
from producer.log.large_records import refusal, send_in_order
from producer.log.writer import Coordinates, Record, TopicPartition
from schemas.catalogue import NUM_PARTITIONS
from schemas.installation import Installation
from schemas.kafka_log import (
    MAX_BATCH_BYTES,
    MAX_BYTES_SETTING,
    MAX_MESSAGE_BYTES,
    TOPIC_SETTINGS,
    kafka_log_id,
    largest_value,
    real_topic_ids,
)
from schemas.local_log import partition_of
from schemas.wire import CONTENT_TYPE

DELIVERY_TIMEOUT_S = 30.0
"""After it, an unacknowledged record is sent again from the spool by a new producer."""
FLUSH_S = 1.0
"""Between looks whether the topics are still there."""
LINGER_MS = 20
BATCH_BYTES = 256 << 10
READ_TIMEOUT_S = 30.0
"""Without any record before the end is reached: Kafka does not answer."""

# CloudEvents needs only this header in structured mode; each further one costs kafka-python a third
# of its throughput.
HEADERS = [("content-type", CONTENT_TYPE.encode())]

WHOLE_BYTES, PART_BYTES = 4 << 20, 256 << 10
"""Fetched at once of a partition; of one that is read in parts most would be thrown away."""
SAMPLE_BYTES = 64 << 10
"""Of each partition's first records, to learn where their keys are."""


class KafkaLog:
    """LogWriter on Kafka. Connects and creates missing topics when constructed.

    `append` returns once all in-sync replicas have acknowledged every record. After
    UnreachableError some may be in the log: send all of them again, in order (readers detect
    duplicates by their sequence), through a new one: a deleted topic is then made again, and is
    another log. `append` is for one thread at a time; the reading methods may run
    beside it. Memory: the records of one `append`. `close` is idempotent.
    """

    def __init__(
        self,
        installation: Installation,
        topics: Collection[str],
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        assigned: AssignedPartitions | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """`assigned`: what others of the same installation found out, and this one will.

        `stop`: once it is set, reading ends in StopRequestedError; appending does not.

        Raises UnreachableError when no broker answers, UsageError for an unknown setting.
        """
        assert installation.kafka_bootstrap_servers is not None  # noqa: S101  # the caller's decision
        servers = installation.kafka_bootstrap_servers
        self._clients = KafkaClients(servers, installation.kafka_options, connect_timeout_s, stop)
        self._topics = sorted(topics)
        self._num_partitions: dict[str, int] = {}
        """Topic -> how many of its partitions our keys are assigned to; one that grew has more."""
        self._sizes: dict[str, int] = {}
        self._assigned = assigned or AssignedPartitions()
        self.max_message_bytes: dict[str, int] = {}
        """Topic -> bytes of the largest record batch that it takes, when this was connected."""
        self.misplaced: dict[str, str] = {}
        """Stream -> topic of every stream that was read from another partition than its own."""
        self._producer: Any = None
        self._in_flight: Sequence[Any] = ()
        self._closed = False
        self._topic_ids: dict[str, str] = {}
        self._log_id = self._prepare()

    @property
    def log_id(self) -> str:
        """Kafka's cluster id and the topics' ids."""
        return self._log_id

    def _prepare(self) -> str:
        """Create missing topics, learn how many partitions each has; returns the log's id."""
        with self._clients.admin() as admin:
            described = {topic["name"]: topic for topic in admin.describe_topics(self._topics)}
            absent = [topic for topic in self._topics if described[topic]["error_code"]]
            if absent:
                self._create_topics(admin, absent)
                described = {topic["name"]: topic for topic in admin.describe_topics(self._topics)}
            self._sizes = {name: len(topic["partitions"]) for name, topic in described.items()}
            cluster_id = admin.describe_cluster()["cluster_id"]
            self.max_message_bytes = self._describe_limits(admin)
        missing = [topic for topic, count in self._sizes.items() if not count]
        if missing:
            message = (
                f"Kafka at {self._clients.servers} has no partitions for {', '.join(missing)}. Is"
                " this user allowed to create and describe topics?"
            )
            raise UnreachableError(message)
        # Streams stay in their partitions although the topic grew.
        ids = {name: str(topic["topic_id"]) for name, topic in described.items()}
        sized = {name: (ids[name], size) for name, size in self._sizes.items()}
        self._num_partitions = self._assigned.of(sized, self._find_assigned)
        self._topic_ids = real_topic_ids(ids)
        return kafka_log_id(str(cluster_id), ids)

    def _describe_limits(self, admin: Any) -> dict[str, int]:
        """max.message.bytes of each topic, the broker's default included."""
        limits = dict.fromkeys(self._topics, MAX_MESSAGE_BYTES)
        # Some users may not read a topic's settings; then Kafka's refusals have to do.
        with contextlib.suppress(KafkaError):
            described = admin.describe_configs(
                [ConfigResource("TOPIC", topic) for topic in self._topics], config_filter="all"
            )
            for topic, settings in described.get("topic", {}).items():
                if MAX_BYTES_SETTING in settings:
                    limits[topic] = int(settings[MAX_BYTES_SETTING]["value"])
        return limits

    @staticmethod
    def _create_topics(admin: Any, topics: Sequence[str]) -> None:
        wanted = {
            "num_partitions": NUM_PARTITIONS,
            "replication_factor": -1,
            "configs": TOPIC_SETTINGS,
        }
        for topic in topics:
            # Another host may be creating it, too.
            with contextlib.suppress(TopicAlreadyExistsError):
                admin.create_topics({topic: wanted})
        admin.wait_for_topics(list(topics))

    def append(self, records: Sequence[Record]) -> list[Coordinates]:
        """Send in order and wait for all acknowledgements. UnreachableError: send all again.

        RecordRefusedError for the first record that is larger than its topic takes; those before it
        are in the log, of those after it none.
        """
        return send_in_order(
            records,
            send=self._send,
            is_large=lambda record: (
                len(record.value)
                > largest_value(min(MAX_BATCH_BYTES, self.max_message_bytes[record.topic]))
            ),
            too_large=SIZE_ERRORS,
            restart=self._drop_producer,
            reason=lambda record: refusal(record, self._clients.servers),
        )

    @property
    def progress(self) -> tuple[int, int]:
        """(sent, acknowledged) records of the `append` in progress. From any thread."""
        in_flight = self._in_flight
        return len(in_flight), sum(future.is_done for future in in_flight)

    def _send(self, records: Sequence[Record]) -> list[Coordinates]:
        """As `append`; raises SIZE_ERRORS."""
        futures: list[Any] = []
        self._in_flight = futures
        try:
            producer = self._open_producer()
            for record in records:
                number = partition_of(record.key, self._num_partitions[record.topic])
                key = record.key.encode()
                futures.append(producer.send(record.topic, record.value, key, HEADERS, number))
            self._flush(producer, {record.topic for record in records})
            # flush returns normally although deliveries failed: only the futures tell.
            delivered = [future.get(timeout=DELIVERY_TIMEOUT_S) for future in futures]
        except SIZE_ERRORS:
            raise
        except KafkaError as error:
            # It may still hold records that would arrive out of order; a new producer does not.
            self._drop_producer()
            raise self._clients.unreachable(error, "did not take records") from error
        self._require_same_topics(producer, {record.topic for record in records})
        return [Coordinates(done.topic, done.partition, done.offset) for done in delivered]

    def _flush(self, producer: Any, topics: Collection[str]) -> None:
        """Wait until everything was sent. KafkaError; UnreachableError once a topic is gone."""
        deadline = time.monotonic() + DELIVERY_TIMEOUT_S
        while True:
            try:
                producer.flush(FLUSH_S)
            except KafkaTimeoutError:
                self._require_same_topics(producer, topics)
                if time.monotonic() > deadline:
                    raise
            else:
                return

    def _require_same_topics(self, producer: Any, topics: Collection[str]) -> None:
        """UnreachableError when this log is no more: what was sent is lost, or in another one."""
        now = topic_ids(producer, topics)
        for topic in self._topic_ids.keys() & topics:
            if now.get(topic) != self._topic_ids[topic]:
                self._drop_producer()
                message = f"topic {topic} was deleted, and with it what was sent before."
                raise UnreachableError(message)

    def ends(self) -> dict[TopicPartition, int]:
        """Offset after the last record of every partition. UnreachableError."""
        partitions = [
            KafkaPartition(topic, partition)
            for topic, count in self._sizes.items()
            for partition in range(count)
        ]
        with self._clients.consumer() as consumer:
            timeout_ms = int(CONNECT_TIMEOUT_S * 1000)
            found = self._clients.ask(partial(consumer.end_offsets, partitions, timeout_ms))
        return {TopicPartition(at.topic, at.partition): int(end) for at, end in found.items()}

    def read_streams(
        self, topic: str, keys: Collection[str], since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of several streams, each in order, from `since` to the end at call.

        One pass over their partitions. Raises UnreachableError, MismatchError.
        """
        places = sorted({self.place_of(topic, key) for key in keys})
        yield from self._read(places, {key.encode() for key in keys}, since)

    def read_topic(
        self, topic: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of a topic's records, each partition in order, from `since` to the end.

        Raises UnreachableError, MismatchError.
        """
        yield from self._read(self._places(topic), None, since)

    def read_training(
        self, topic: str, training_id: UUID, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """Everything of the topic from `since` on: Kafka has no index. Raises as above."""
        del training_id
        yield from self.read_topic(topic, since)

    def place_of(self, topic: str, key: str) -> TopicPartition:
        """The partition that a stream's records are in."""
        return TopicPartition(topic, partition_of(key, self._num_partitions[topic]))

    def spans(self, topic: str, since: Mapping[TopicPartition, int]) -> dict[TopicPartition, range]:
        """Offsets from `since` to the end of each partition that has any. Raises as above."""
        with self._clients.consumer() as consumer:
            return self._spans(consumer, self._places(topic), since)

    def read_within(
        self, spans: Mapping[TopicPartition, Sequence[range]]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of the records at these offsets, each partition in order. Raises as above.

        The offsets are the log's, ascending.
        """
        if any(spans.values()):
            is_in_parts = any(len(ranges) > 1 for ranges in spans.values())
            size = PART_BYTES if is_in_parts else WHOLE_BYTES
            with self._clients.consumer(max_partition_fetch_bytes=size) as consumer:
                yield from self._records(consumer, spans, None)

    def _read(
        self,
        places: Sequence[TopicPartition],
        wanted: Collection[bytes] | None,
        since: Mapping[TopicPartition, int],
    ) -> Iterator[tuple[str, bytes]]:
        with self._clients.consumer() as consumer:
            spans = self._spans(consumer, places, since)
            yield from self._records(consumer, {at: [one] for at, one in spans.items()}, wanted)

    def _records(
        self,
        consumer: Any,
        spans: Mapping[TopicPartition, Sequence[range]],
        wanted: Collection[bytes] | None,
    ) -> Iterator[tuple[str, bytes]]:
        """Records with these keys (None: all); one fetch at a time is in memory."""
        partitions = {KafkaPartition(*at): ranges for at, ranges in spans.items()}
        try:
            for at, records in read_spans(
                consumer, partitions, READ_TIMEOUT_S, stop=self._clients.stop
            ):
                for record in records:
                    if wanted is None or record.key in wanted:
                        key = (record.key or b"").decode(errors="replace")
                        if partition_of(key, self._num_partitions[at.topic]) != at.partition:
                            self.misplaced[key] = at.topic
                        # A tombstone has no value, as for the consumers.
                        yield key, record.value or b""
        except TimeoutError as error:
            message = (
                f"Kafka at {self._clients.servers} sent nothing for {READ_TIMEOUT_S:g} s although"
                " its log has more records. Is it overloaded?"
            )
            raise UnreachableError(message) from error

    def _places(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for number in range(self._sizes[topic])]

    def _spans(
        self, consumer: Any, places: Sequence[TopicPartition], since: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, range]:
        partitions = [KafkaPartition(*at) for at in places]
        ask = partial(bounds, consumer, partitions, CONNECT_TIMEOUT_S)
        return spans_to_read(*self._clients.ask(ask), since)

    def _find_assigned(self, topics: Collection[str]) -> dict[str, int]:
        """How many of each topic's partitions our keys are assigned to. UnreachableError."""
        grown = [topic for topic in topics if may_have_grown(self._sizes[topic])]
        if not grown:
            return {topic: self._sizes[topic] for topic in topics}
        places = [at for topic in grown for at in self._places(topic)]
        with self._clients.consumer(max_partition_fetch_bytes=SAMPLE_BYTES) as consumer:
            found = self._spans(consumer, places, {})
            spans = {KafkaPartition(*at): span for at, span in found.items()}
            keys = first_keys(consumer, spans, CONNECT_TIMEOUT_S)
        return {
            topic: assigned_partitions(
                self._sizes[topic],
                {at.partition: own for at, own in keys.items() if at.topic == topic},
            )
            for topic in topics
        }

    def _open_producer(self) -> Any:
        if self._closed:
            message = f"the connection to Kafka at {self._clients.servers} was closed"
            raise UnreachableError(message)
        if self._producer is None:
            self._producer = self._clients.producer(
                compression_type="lz4",
                linger_ms=LINGER_MS,
                batch_size=BATCH_BYTES,
                # An operator may raise a topic's limit for what an older release left in a spool.
                max_request_size=min(
                    MAX_BATCH_BYTES, max(MAX_MESSAGE_BYTES, *self.max_message_bytes.values())
                ),
                max_block_ms=int(CONNECT_TIMEOUT_S * 1000),
                delivery_timeout_ms=int(DELIVERY_TIMEOUT_S * 1000),
                request_timeout_ms=int(CONNECT_TIMEOUT_S * 1000),
            )
        return self._producer

    def _drop_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            close_producer(producer)

    def close(self) -> None:
        """Release sockets and threads; an `append` in progress fails."""
        self._closed = True
        self._drop_producer()
