"""The log on many machines: Apache Kafka. The only module of the producer that imports kafka.

Owns creating topics, an idempotent producer, and reading streams back. Does not know the spool and
the shipper in front of it.
"""

import contextlib
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from typing import Any
from uuid import UUID

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import ConfigResource
from kafka.errors import (
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    TopicAlreadyExistsError,
)
from kafka.net.compat import KafkaNetClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from producer.errors import UnreachableError, UsageError
from producer.log.kafka_partitions import assigned_partitions, spans_to_read
from producer.log.kafka_reading import bounds, first_keys, read_spans
from producer.log.knock import knock
from producer.log.large_records import refusal, send_in_order
from producer.log.writer import Coordinates, Record, TopicPartition
from schemas.catalogue import NUM_PARTITIONS
from schemas.installation import Installation
from schemas.kafka_log import (
    MAX_BYTES_SETTING,
    MAX_MESSAGE_BYTES,
    TOPIC_SETTINGS,
    client_settings,
    kafka_log_id,
    largest_value,
    server_addresses,
)
from schemas.kafka_token import ClientCredentials
from schemas.local_log import partition_of
from schemas.wire import CONTENT_TYPE

CONNECT_TIMEOUT_S = 10.0
DELIVERY_TIMEOUT_S = 30.0
"""After it, an unacknowledged record is sent again from the spool by a new producer."""
LINGER_MS = 20
BATCH_BYTES = 256 << 10
READ_TIMEOUT_S = 30.0
"""Without any record before the end is reached: Kafka does not answer."""

# CloudEvents needs only this header in structured mode; each further one costs kafka-python a third
# of its throughput.
HEADERS = [("content-type", CONTENT_TYPE.encode())]

SIZE_ERRORS = (MessageSizeTooLargeError, RecordListTooLargeError)
"""A record is larger than the topic, or the producer's request, may be."""
SAMPLE_BYTES = 64 << 10
"""Of each partition's first records, to learn where their keys are."""

# The caller reports an outage once; kafka-python would print a line for every attempt.
logging.getLogger("kafka").addHandler(logging.NullHandler())

# kafka-python wants its own class; ours imports no kafka.
AbstractTokenProvider.register(ClientCredentials)


class KafkaLog:
    """LogWriter on Kafka. Connects and creates missing topics when constructed.

    `append` returns once all in-sync replicas have acknowledged every record. After
    UnreachableError some may be in the log: send all of them again, in order (readers detect
    duplicates by their sequence). `append` is for one thread at a time; the reading methods may run
    beside it. Memory: the records of one `append`. `close` is idempotent.
    """

    def __init__(
        self,
        installation: Installation,
        topics: Collection[str],
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        assigned: MutableMapping[tuple[str, int], int] | None = None,
    ) -> None:
        """`assigned`: what earlier ones learnt of (topic id, size), extended here.

        Raises UnreachableError when no broker answers, UsageError for an unknown setting.
        """
        assert installation.kafka_bootstrap_servers is not None  # noqa: S101  # the caller's decision
        self._servers = installation.kafka_bootstrap_servers
        try:
            self._addresses = server_addresses(self._servers)
            self._settings: dict[str, Any] = {
                "bootstrap_servers": self._servers.split(","),
                "bootstrap_timeout_ms": int(connect_timeout_s * 1000),
                "reconnect_backoff_max_ms": 1000,
                **client_settings(installation.kafka_options),
            }
        except ValueError as error:
            raise UsageError(str(error)) from error
        self._topics = sorted(topics)
        self._num_partitions: dict[str, int] = {}
        """Topic -> how many of its partitions our keys are assigned to; one that grew has more."""
        self._sizes: dict[str, int] = {}
        self._known = {} if assigned is None else assigned
        self.max_message_bytes: dict[str, int] = {}
        """Topic -> bytes of the largest record batch that it takes, when this was connected."""
        self.misplaced: dict[str, str] = {}
        """Stream -> topic of every stream that was read from another partition than its own."""
        self._producer: Any = None
        self._closed = False
        self._log_id = self._prepare()

    @property
    def log_id(self) -> str:
        """Kafka's cluster id and the topics' ids."""
        return self._log_id

    def _prepare(self) -> str:
        """Create missing topics, learn how many partitions each has; returns the log's id."""
        admin = self._client(KafkaAdminClient)
        try:
            described = {topic["name"]: topic for topic in admin.describe_topics(self._topics)}
            absent = [topic for topic in self._topics if described[topic]["error_code"]]
            if absent:
                self._create_topics(admin, absent)
                described = {topic["name"]: topic for topic in admin.describe_topics(self._topics)}
            self._sizes = {name: len(topic["partitions"]) for name, topic in described.items()}
            cluster_id = admin.describe_cluster()["cluster_id"]
            self.max_message_bytes = self._describe_limits(admin)
        except KafkaError as error:
            raise self._unreachable(error, "did not answer") from error
        finally:
            admin.close()
        missing = [topic for topic, count in self._sizes.items() if not count]
        if missing:
            message = (
                f"Kafka at {self._servers} has no partitions for {', '.join(missing)}. Is this user"
                " allowed to create and describe topics?"
            )
            raise UnreachableError(message)
        # Streams stay in their partitions although the topic grew.
        for topic, size in self._sizes.items():
            key = str(described[topic]["topic_id"]), size
            if key not in self._known:
                self._known[key] = self._assigned(topic, size)
            self._num_partitions[topic] = self._known[key]
        return kafka_log_id(
            str(cluster_id), {name: str(topic["topic_id"]) for name, topic in described.items()}
        )

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
                len(record.value) > largest_value(self.max_message_bytes[record.topic])
            ),
            too_large=SIZE_ERRORS,
            restart=self._drop_producer,
            reason=lambda record: refusal(record, self._servers),
        )

    def _send(self, records: Sequence[Record]) -> list[Coordinates]:
        """As `append`; raises SIZE_ERRORS."""
        try:
            producer = self._open_producer()
            futures = [
                producer.send(
                    record.topic,
                    record.value,
                    record.key.encode(),
                    HEADERS,
                    partition_of(record.key, self._num_partitions[record.topic]),
                )
                for record in records
            ]
            producer.flush(DELIVERY_TIMEOUT_S)
            # flush returns normally although deliveries failed: only the futures tell.
            delivered = [future.get(timeout=DELIVERY_TIMEOUT_S) for future in futures]
        except SIZE_ERRORS:
            raise
        except KafkaError as error:
            # It may still hold records that would arrive out of order; a new producer does not.
            self._drop_producer()
            raise self._unreachable(error, "did not take records") from error
        return [Coordinates(done.topic, done.partition, done.offset) for done in delivered]

    def ends(self) -> dict[TopicPartition, int]:
        """Offset after the last record of every partition. UnreachableError."""
        partitions = [
            kafka.TopicPartition(topic, partition)
            for topic, count in self._sizes.items()
            for partition in range(count)
        ]
        with self._consumer() as consumer:
            found = consumer.end_offsets(partitions, timeout_ms=int(CONNECT_TIMEOUT_S * 1000))
        return {TopicPartition(at.topic, at.partition): int(end) for at, end in found.items()}

    def read_streams(
        self, topic: str, keys: Collection[str], since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of several streams, each in order, from `since` to the end at call.

        One pass over their partitions. Raises UnreachableError, MismatchError.
        """
        numbers = sorted({partition_of(key, self._num_partitions[topic]) for key in keys})
        partitions = [kafka.TopicPartition(topic, number) for number in numbers]
        yield from self._read(partitions, {key.encode() for key in keys}, since)

    def read_topic(
        self, topic: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of a topic's records, each partition in order, from `since` to the end.

        Raises UnreachableError, MismatchError.
        """
        partitions = [kafka.TopicPartition(topic, number) for number in range(self._sizes[topic])]
        yield from self._read(partitions, None, since)

    def place_of(self, topic: str, key: str) -> TopicPartition:
        """The partition that a stream's records are in."""
        return TopicPartition(topic, partition_of(key, self._num_partitions[topic]))

    def read_partition(
        self, place: TopicPartition, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of a partition's records, in order. Raises as above."""
        yield from self._read([kafka.TopicPartition(*place)], None, since)

    def read_training(
        self, topic: str, training_id: UUID, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """Everything of the topic from `since` on: Kafka has no index. Raises as above."""
        del training_id
        yield from self.read_topic(topic, since)

    def _read(
        self,
        partitions: Sequence[Any],
        wanted: Collection[bytes] | None,
        since: Mapping[TopicPartition, int],
    ) -> Iterator[tuple[str, bytes]]:
        """Records with these keys (None: all); one fetch at a time is in memory."""
        with self._consumer() as consumer:
            spans = self._spans(consumer, partitions, since)
            try:
                for at, records in read_spans(consumer, spans, READ_TIMEOUT_S):
                    for record in records:
                        if wanted is None or record.key in wanted:
                            key = (record.key or b"").decode(errors="replace")
                            if partition_of(key, self._num_partitions[at.topic]) != at.partition:
                                self.misplaced[key] = at.topic
                            yield key, record.value
            except TimeoutError as error:
                message = (
                    f"Kafka at {self._servers} sent nothing for {READ_TIMEOUT_S:g} s although"
                    " its log has more records. Is it overloaded?"
                )
                raise UnreachableError(message) from error

    def _spans(
        self, consumer: Any, partitions: Sequence[Any], since: Mapping[TopicPartition, int]
    ) -> dict[Any, range]:
        found = spans_to_read(*bounds(consumer, partitions, CONNECT_TIMEOUT_S), since)
        return {kafka.TopicPartition(*at): span for at, span in found.items()}

    def _assigned(self, topic: str, size: int) -> int:
        """How many of the topic's partitions our keys are assigned to, by its first records.

        UnreachableError, MismatchError.
        """
        partitions = [kafka.TopicPartition(topic, number) for number in range(size)]
        with self._consumer(max_partition_fetch_bytes=SAMPLE_BYTES) as consumer:
            spans = self._spans(consumer, partitions, {})
            return assigned_partitions(topic, size, first_keys(consumer, spans, CONNECT_TIMEOUT_S))

    @contextlib.contextmanager
    def _consumer(self, max_partition_fetch_bytes: int = 4 << 20) -> Iterator[Any]:
        """A consumer for one call; one kept open would keep reconnecting through an outage."""
        consumer = self._client(
            KafkaConsumer,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            allow_auto_create_topics=False,
            metrics_enabled=False,
            max_partition_fetch_bytes=max_partition_fetch_bytes,
        )
        try:
            yield consumer
        except KafkaError as error:
            raise self._unreachable(error, "did not answer") from error
        finally:
            consumer.close(autocommit=False, timeout_ms=0)

    def _open_producer(self) -> Any:
        if self._closed:
            message = f"the connection to Kafka at {self._servers} was closed"
            raise UnreachableError(message)
        if self._producer is None:
            self._producer = self._client(
                KafkaProducer,
                enable_idempotence=True,
                acks="all",
                compression_type="lz4",
                linger_ms=LINGER_MS,
                batch_size=BATCH_BYTES,
                # An operator may raise a topic's limit for what an older release left in a spool.
                max_request_size=max(MAX_MESSAGE_BYTES, *self.max_message_bytes.values()),
                max_block_ms=int(CONNECT_TIMEOUT_S * 1000),
                delivery_timeout_ms=int(DELIVERY_TIMEOUT_S * 1000),
                request_timeout_ms=int(CONNECT_TIMEOUT_S * 1000),
                allow_auto_create_topics=False,
                metrics_enabled=False,
            )
        return self._producer

    def _drop_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(KafkaError):
                producer.close(timeout=0)

    def _client(self, make: Callable[..., Any], **settings: object) -> Any:
        """A client of kafka-python. UnreachableError."""
        self._knock()
        started: list[KafkaNetClient] = []

        def remember(**configs: object) -> Any:
            started.append(KafkaNetClient(**configs))
            return started[-1]

        try:
            tokens = self._settings.get("sasl_oauth_token_provider")
            if isinstance(tokens, ClientCredentials):
                tokens.token()  # kafka-python would try for ten seconds, and not say why
            return make(**self._settings, **settings, kafka_client=remember)
        except (KafkaError, OSError, ValueError) as error:
            # A client that could not connect leaves a thread and a socket behind, and its close()
            # does nothing.
            for client in started:
                client.close()
                client._net.stop()
            raise self._unreachable(error, "cannot be reached") from error

    def _knock(self) -> None:
        """Raise UnreachableError at once when no server takes a connection.

        kafka-python would try for ten seconds and leave sockets open.
        """
        try:
            knock(self._addresses)
        except OSError as error:
            raise self._unreachable(error, "cannot be reached") from error

    def _unreachable(self, error: BaseException, what: str) -> UnreachableError:
        message = (
            f"Kafka at {self._servers} {what}: {error}. Is it running, and is"
            " KAFKA_BOOTSTRAP_SERVERS right?"
        )
        return UnreachableError(message)

    def close(self) -> None:
        """Release sockets and threads; an `append` in progress fails."""
        self._closed = True
        self._drop_producer()
