"""The log on many machines: Apache Kafka. The only module of the producer that imports kafka.

Owns topics, an idempotent producer and reading streams back. Does not know the spool in front of it
(`producer.log.shipper`).
"""

import contextlib
import logging
import socket
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError, TopicAlreadyExistsError
from kafka.net.compat import KafkaNetClient

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
from schemas.local_log import partition_of
from schemas.wire import CONTENT_TYPE

CONNECT_TIMEOUT_S = 10.0
DELIVERY_TIMEOUT_S = 30.0
"""After which an unacknowledged record counts as not delivered; it is then sent again from the
spool, by a fresh producer."""
LINGER_MS = 20
BATCH_BYTES = 256 << 10
READ_TIMEOUT_S = 30.0
"""Without a single record, while the end is further on: Kafka does not answer."""

# More headers cost a third of the throughput in kafka-python; CloudEvents needs only this one in
# structured mode.
HEADERS = [("content-type", CONTENT_TYPE.encode())]

KNOCK_TIMEOUT_S = 3.0

# A broker that is away is our caller's to report, once; kafka-python would print a line for every
# attempt.
logging.getLogger("kafka").addHandler(logging.NullHandler())


class KafkaLog:
    """LogWriter on Kafka. Connects when it is made, and makes the topics that are absent.

    `append` returns once every record has its own acknowledgement from all in-sync replicas;
    UnreachableError: some may be in the log, send all of them again, in order (readers know a
    stream's duplicates by their sequence). `append` is for one thread at a time; the reading
    methods may run beside it. Memory: what one `append` is given. `close` twice is once.
    """

    def __init__(
        self,
        installation: Installation,
        topics: Collection[str],
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> None:
        """UnreachableError when no broker answers, UsageError for a setting that is not known."""
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
        """Make the topics that are absent, learn how many partitions each has; the log's id."""
        admin = self._client(KafkaAdminClient)
        try:
            described = {topic["name"]: topic for topic in admin.describe_topics(self._topics)}
            absent = [topic for topic in self._topics if described[topic]["error_code"]]
            if absent:
                self._make(admin, absent)
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
                f"Kafka at {self._servers} has no partitions for {', '.join(missing)}; may this"
                " user create topics and describe them?"
            )
            raise UnreachableError(message)
        return kafka_log_id(
            str(cluster_id), {name: str(topic["topic_id"]) for name, topic in described.items()}
        )

    @staticmethod
    def _make(admin: Any, topics: Sequence[str]) -> None:  # kafka-python has no types
        wanted = {
            "num_partitions": NUM_PARTITIONS,
            "replication_factor": -1,
            "configs": TOPIC_SETTINGS,
        }
        for topic in topics:
            # Another host may be making it at this moment.
            with contextlib.suppress(TopicAlreadyExistsError):
                admin.create_topics({topic: wanted})
        admin.wait_for_topics(list(topics))

    def append(self, records: Sequence[Record]) -> list[Coordinates]:
        """Send in order and wait for every acknowledgement. UnreachableError: send all again."""
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
            # flush returns normally although deliveries failed: only a record's own future says
            # that it is in the log.
            delivered = [future.get(timeout=DELIVERY_TIMEOUT_S) for future in futures]
        except KafkaError as error:
            # What this producer still holds would come late; a fresh one begins a new idempotent
            # session.
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

        One pass over their partitions.
        """
        numbers = sorted({partition_of(key, self._num_partitions[topic]) for key in keys})
        partitions = [kafka.TopicPartition(topic, number) for number in numbers]
        yield from self._read(partitions, {key.encode() for key in keys}, since)

    def read_topic(
        self, topic: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of every record of a topic, each partition in order, from `since` to the end at call. UnreachableError."""
        partitions = [
            kafka.TopicPartition(topic, number) for number in range(self._num_partitions[topic])
        ]
        yield from self._read(partitions, None, since)

    def _read(
        self,
        partitions: Sequence[Any],
        wanted: Collection[bytes] | None,
        since: Mapping[TopicPartition, int],
    ) -> Iterator[tuple[str, bytes]]:
        """Records with these keys (None: all), a fetch at a time in memory."""
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
                        f"Kafka at {self._servers} sent nothing for {READ_TIMEOUT_S} s although its"
                        " log goes on; is it overloaded?"
                    )
                    raise UnreachableError(message)

    def _spans(
        self, consumer: Any, partitions: Sequence[Any], since: Mapping[TopicPartition, int]
    ) -> dict[Any, range]:  # kafka-python has no types
        """Offsets to read of each partition that has any, up to its end now.

        MismatchError for a bound that this log cannot have.
        """
        timeout_ms = int(CONNECT_TIMEOUT_S * 1000)
        ends = consumer.end_offsets(list(partitions), timeout_ms=timeout_ms)
        beginnings = consumer.beginning_offsets(list(partitions), timeout_ms=timeout_ms)
        spans: dict[Any, range] = {}
        for at in partitions:
            start = since.get(TopicPartition(at.topic, at.partition), beginnings[at])
            if not beginnings[at] <= start <= ends[at]:
                message = (
                    f"{at.topic}/{at.partition}: expected an offset from {beginnings[at]} to"
                    f" {ends[at]}, found {start}; it is of another log, or the topic's retention"
                    " has deleted records"
                )
                raise MismatchError(message)
            if start < ends[at]:
                spans[at] = range(start, ends[at])
        return spans

    @contextlib.contextmanager
    def _consumer(self) -> Iterator[Any]:
        """A consumer for one question.

        One that is kept would try to reconnect all through an outage.
        """
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

    def _open_producer(self) -> Any:  # kafka-python has no types
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

    def _client(
        self, make: Callable[..., Any], **settings: object
    ) -> Any:  # kafka-python has no types
        """A client of kafka-python; when it cannot connect, what it has started is stopped (it leaves a thread and a socket behind)."""
        self._knock()
        started: list[KafkaNetClient] = []

        def remember(**configs: object) -> Any:  # kafka-python has no types
            started.append(KafkaNetClient(**configs))
            return started[-1]

        try:
            return make(**self._settings, **settings, kafka_client=remember)
        except (KafkaError, OSError, ValueError) as error:
            for client in started:
                client.close()
                client._net.stop()  # close() of the half-made client does nothing
            raise self._unreachable(error, "cannot be reached") from error

    def _knock(self) -> None:
        """UnreachableError at once when no server takes a connection.

        Kafka-python would try for ten seconds, and leave sockets open.
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
        """Give sockets and threads back; an `append` under way fails. Twice is once."""
        self._closed = True
        self._drop_producer()
