"""The log on many machines: Apache Kafka. The only module of the producer that imports kafka.

Owns creating topics, an idempotent producer, and reading streams back. Does not know the spool and
the shipper in front of it.
"""

import contextlib
import logging
import socket
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError, TopicAlreadyExistsError
from kafka.net.compat import KafkaNetClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from producer.errors import MismatchError, UnreachableError, UsageError
from producer.log.writer import Coordinates, Record, TopicPartition
from schemas.catalogue import NUM_PARTITIONS
from schemas.installation import Installation
from schemas.kafka_log import (
    MAX_MESSAGE_BYTES,
    TOPIC_SETTINGS,
    client_settings,
    kafka_log_id,
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

KNOCK_TIMEOUT_S = 3.0

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
    ) -> None:
        """Raises UnreachableError when no broker answers, UsageError for an unknown setting."""
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
            self._num_partitions = {
                name: len(topic["partitions"]) for name, topic in described.items()
            }
            cluster_id = admin.describe_cluster()["cluster_id"]
        except KafkaError as error:
            raise self._unreachable(error, "did not answer") from error
        finally:
            admin.close()
        missing = [topic for topic, count in self._num_partitions.items() if not count]
        if missing:
            message = (
                f"Kafka at {self._servers} has no partitions for {', '.join(missing)}. Is this user"
                " allowed to create and describe topics?"
            )
            raise UnreachableError(message)
        return kafka_log_id(
            str(cluster_id), {name: str(topic["topic_id"]) for name, topic in described.items()}
        )

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
        """Send in order and wait for all acknowledgements. UnreachableError: send all again."""
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
        except KafkaError as error:
            # It may still hold records that would arrive out of order; a new producer does not.
            self._drop_producer()
            raise self._unreachable(error, "did not take records") from error
        return [Coordinates(done.topic, done.partition, done.offset) for done in delivered]

    def ends(self) -> dict[TopicPartition, int]:
        """Offset after the last record of every partition. UnreachableError."""
        partitions = [
            kafka.TopicPartition(topic, partition)
            for topic, count in self._num_partitions.items()
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
        partitions = [
            kafka.TopicPartition(topic, number) for number in range(self._num_partitions[topic])
        ]
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
            left = self._spans(consumer, partitions, since)
            consumer.assign(list(left))
            for at, span in left.items():
                consumer.seek(at, span.start)
            deadline = time.monotonic() + READ_TIMEOUT_S
            while left:
                for at, records in consumer.poll(timeout_ms=500, max_records=5000).items():
                    deadline = time.monotonic() + READ_TIMEOUT_S
                    span = left.get(at, range(0))
                    for record in records:
                        if record.offset in span and (wanted is None or record.key in wanted):
                            yield (record.key or b"").decode(errors="replace"), record.value
                    if records[-1].offset + 1 >= span.stop:
                        left.pop(at, None)
                        consumer.pause(at)
                if time.monotonic() > deadline:
                    message = (
                        f"Kafka at {self._servers} sent nothing for {READ_TIMEOUT_S:g} s although"
                        " its log has more records. Is it overloaded?"
                    )
                    raise UnreachableError(message)

    def _spans(
        self, consumer: Any, partitions: Sequence[Any], since: Mapping[TopicPartition, int]
    ) -> dict[Any, range]:
        """Offsets to read of each partition that has any, up to its end now.

        Raises MismatchError for an offset outside of this log.
        """
        timeout_ms = int(CONNECT_TIMEOUT_S * 1000)
        ends = consumer.end_offsets(list(partitions), timeout_ms=timeout_ms)
        beginnings = consumer.beginning_offsets(list(partitions), timeout_ms=timeout_ms)
        spans: dict[Any, range] = {}
        for at in partitions:
            start = since.get(TopicPartition(at.topic, at.partition), beginnings[at])
            if not beginnings[at] <= start <= ends[at]:
                message = (
                    f"offset {start} is outside of {at.topic}/{at.partition}, which has"
                    f" {beginnings[at]} to {ends[at]}: it belongs to another log, or the topic's"
                    " retention has deleted records"
                )
                raise MismatchError(message)
            if start < ends[at]:
                spans[at] = range(start, ends[at])
        return spans

    @contextlib.contextmanager
    def _consumer(self) -> Iterator[Any]:
        """A consumer for one call; one kept open would keep reconnecting through an outage."""
        consumer = self._client(
            KafkaConsumer,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            allow_auto_create_topics=False,
            metrics_enabled=False,
            max_partition_fetch_bytes=4 << 20,
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
                max_request_size=MAX_MESSAGE_BYTES,
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
        failure: OSError | None = None
        for address in self._addresses:
            try:
                with socket.create_connection(address, KNOCK_TIMEOUT_S):
                    return
            except OSError as error:
                failure = error
        assert failure is not None  # noqa: S101  # there is at least one address
        raise self._unreachable(failure, "cannot be reached") from failure

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
