"""Appends to Kafka with an idempotent producer; every record is acknowledged or sent again."""

import time
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import Any

from producer.errors import MismatchError, UnreachableError
from producer.log.kafka_client import (
    CONNECT_TIMEOUT_S,
    SIZE_ERRORS,
    KafkaClients,
    KafkaError,
    KafkaTimeoutError,
    close_producer,
    topic_ids,
    topic_sizes,
)
from producer.log.writer import Coordinates, Record, RecordRefusedError
from schemas.home import describe_growth, home_partition, name_sizes
from schemas.kafka_log import MAX_BATCH_BYTES, MAX_MESSAGE_BYTES, largest_value, raise_limit
from schemas.wire import CONTENT_TYPE

DELIVERY_TIMEOUT_S = 30.0
"""A record that is not acknowledged by then is sent again from the spool by a new producer."""
FLUSH_S = 1.0
"""Interval between checks that the topics still exist."""
LINGER_MS = 20
BATCH_BYTES = 256 << 10

# In structured mode, CloudEvents needs only this header. Each additional one costs kafka-python a
# third of its throughput.
HEADERS = [("content-type", CONTENT_TYPE.encode())]


class KafkaSender:
    """Appends to existing topics. For one thread; `progress` and `close` are callable from any.

    The producer connects on first use, and again after a failure, because an old one may still hold
    records that would arrive out of order.
    """

    def __init__(
        self,
        clients: KafkaClients,
        sizes: Mapping[str, int],
        max_message_bytes: Mapping[str, int],
        ids: Mapping[str, str],
    ) -> None:
        """By topic: number of partitions, maximum batch size in bytes, and Kafka's id."""
        self._clients = clients
        self._sizes = sizes
        self._max_message_bytes = max_message_bytes
        self._ids = ids
        self._producer: Any = None
        self._in_flight: Sequence[Any] = ()
        self._closed = False

    @property
    def progress(self) -> tuple[int, int]:
        """(sent, acknowledged) records of the current `append`."""
        in_flight = self._in_flight
        return len(in_flight), sum(future.is_done for future in in_flight)

    def append(self, records: Sequence[Record]) -> list[Coordinates]:
        """Send in order and wait for all acknowledgements.

        Raises UnreachableError, after which all must be sent again, and RecordRefusedError for the
        first record that exceeds its topic's limit. The records before that one are in the log,
        those after it are not; so records that may be refused are sent one by one.
        """
        sent: list[Coordinates] = []
        for is_large, numbered in groupby(enumerate(records), lambda pair: self._is_large(pair[1])):
            part = list(numbered)
            if not is_large:
                try:
                    sent += self._send([record for _, record in part])
                    continue
                except SIZE_ERRORS:
                    pass  # The limit is lower than known: sending one by one tells the record.
            for index, record in part:
                try:
                    sent += self._send([record])
                except SIZE_ERRORS as error:
                    raise RecordRefusedError(index, self._refusal(record)) from error
        return sent

    def _is_large(self, record: Record) -> bool:
        limit = min(MAX_BATCH_BYTES, self._max_message_bytes[record.topic])
        return len(record.value) > largest_value(limit)

    def _refusal(self, record: Record) -> str:
        """Why this record was refused, and what an operator can do about it."""
        size = f"a record of {len(record.value):,} bytes"
        if len(record.value) > largest_value(MAX_BATCH_BYTES):
            return (
                f"{size} is larger than any reader takes, which is"
                f" {largest_value(MAX_BATCH_BYTES):,} bytes; it stays in the spool"
            )
        needed = MAX_MESSAGE_BYTES
        while largest_value(needed) < len(record.value):
            needed *= 2
        advice = raise_limit(self._clients.servers, record.topic, needed)
        return f"{size} is larger than topic {record.topic} takes; {advice}"

    def _send(self, records: Sequence[Record]) -> list[Coordinates]:
        """Send all records at once. Raises UnreachableError, SIZE_ERRORS."""
        topics = {record.topic for record in records}
        futures: list[Any] = []
        self._in_flight = futures
        try:
            producer = self._open_producer()
            for record in records:
                number = home_partition(record.key, self._sizes[record.topic])
                key = record.key.encode()
                futures.append(producer.send(record.topic, record.value, key, HEADERS, number))
            self._flush(producer, topics)
            # flush returns normally even if deliveries failed; only the futures tell.
            delivered = [future.get(timeout=DELIVERY_TIMEOUT_S) for future in futures]
        except KafkaError as error:
            self._drop_producer()
            if isinstance(error, SIZE_ERRORS):
                raise
            raise self._clients.unreachable(error, "did not take records") from error
        self._require_same_topics(producer, topics)
        return [Coordinates(done.topic, done.partition, done.offset) for done in delivered]

    def _flush(self, producer: Any, topics: Collection[str]) -> None:
        """Wait until everything is sent.

        Raises KafkaError, and UnreachableError if a topic is gone.
        """
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
        """Raise UnreachableError if a topic was deleted or recreated: sent records are lost.

        MismatchError if a small one has grown: streams would go on in other partitions.
        """
        self._require_same_homes(producer, topics)
        now = topic_ids(producer, topics)
        for topic in self._ids.keys() & topics:
            if now.get(topic) != self._ids[topic]:
                self._drop_producer()
                message = f"topic {topic} was deleted, and with it what was sent before."
                raise UnreachableError(message)

    def _require_same_homes(self, producer: Any, topics: Collection[str]) -> None:
        sizes = {topic: self._sizes[topic] for topic in topics}
        now = sizes | topic_sizes(producer, topics)
        problem = describe_growth(name_sizes(sizes), name_sizes(now))
        if problem is not None:
            self._drop_producer()
            raise MismatchError(problem)

    def _open_producer(self) -> Any:
        if self._closed:
            message = f"the connection to Kafka at {self._clients.servers} was closed"
            raise UnreachableError(message)
        if self._producer is None:
            # An operator may raise a topic's limit for records that an older release left in a
            # spool.
            largest = max(MAX_MESSAGE_BYTES, *self._max_message_bytes.values())
            self._producer = self._clients.producer(
                compression_type="lz4",
                linger_ms=LINGER_MS,
                batch_size=BATCH_BYTES,
                max_request_size=min(MAX_BATCH_BYTES, largest),
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
        """Release sockets and threads. An `append` in progress fails."""
        self._closed = True
        self._drop_producer()
