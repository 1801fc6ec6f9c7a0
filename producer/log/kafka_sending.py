"""Appending to Kafka: an idempotent producer, whose every record is acknowledged or sent again."""

import time
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import Any

from producer.errors import UnreachableError
from producer.log.kafka_client import (
    CONNECT_TIMEOUT_S,
    SIZE_ERRORS,
    KafkaClients,
    KafkaError,
    KafkaTimeoutError,
    close_producer,
    topic_ids,
)
from producer.log.writer import Coordinates, Record, RecordRefusedError
from schemas.kafka_log import MAX_BATCH_BYTES, MAX_MESSAGE_BYTES, largest_value, raise_limit
from schemas.local_log import partition_of
from schemas.wire import CONTENT_TYPE

DELIVERY_TIMEOUT_S = 30.0
"""After it, an unacknowledged record is sent again from the spool by a new producer."""
FLUSH_S = 1.0
"""Between looks whether the topics are still there."""
LINGER_MS = 20
BATCH_BYTES = 256 << 10

# CloudEvents needs only this header in structured mode; each further one costs kafka-python a third
# of its throughput.
HEADERS = [("content-type", CONTENT_TYPE.encode())]


class KafkaSender:
    """Appends to topics that exist. For one thread; `progress` and `close` from any.

    The producer connects when it is first needed, and anew after a failure: an old one may still
    hold records that would arrive out of order.
    """

    def __init__(
        self,
        clients: KafkaClients,
        num_partitions: Mapping[str, int],
        max_message_bytes: Mapping[str, int],
        ids: Mapping[str, str],
    ) -> None:
        """By topic: partitions that keys are assigned to, largest batch, Kafka's id of it."""
        self._clients = clients
        self._num_partitions = num_partitions
        self._max_message_bytes = max_message_bytes
        self._ids = ids
        self._producer: Any = None
        self._in_flight: Sequence[Any] = ()
        self._closed = False

    @property
    def progress(self) -> tuple[int, int]:
        """(sent, acknowledged) records of the `append` in progress."""
        in_flight = self._in_flight
        return len(in_flight), sum(future.is_done for future in in_flight)

    def append(self, records: Sequence[Record]) -> list[Coordinates]:
        """Send in order and wait for all acknowledgements. UnreachableError: send all again.

        RecordRefusedError for the first record that is larger than its topic takes; those before it
        are in the log, of those after it none. So records that may be refused are sent alone.
        """
        sent: list[Coordinates] = []
        for is_large, numbered in groupby(enumerate(records), lambda pair: self._is_large(pair[1])):
            part = list(numbered)
            if not is_large:
                try:
                    sent += self._send([record for _, record in part])
                    continue
                except SIZE_ERRORS:
                    pass  # The limit is lower than known: one at a time tells which record it is.
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
        """Why this record was refused, and what an operator does about it."""
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
        """Send as one. UnreachableError, SIZE_ERRORS."""
        topics = {record.topic for record in records}
        futures: list[Any] = []
        self._in_flight = futures
        try:
            producer = self._open_producer()
            for record in records:
                number = partition_of(record.key, self._num_partitions[record.topic])
                key = record.key.encode()
                futures.append(producer.send(record.topic, record.value, key, HEADERS, number))
            self._flush(producer, topics)
            # flush returns normally although deliveries failed: only the futures tell.
            delivered = [future.get(timeout=DELIVERY_TIMEOUT_S) for future in futures]
        except KafkaError as error:
            self._drop_producer()
            if isinstance(error, SIZE_ERRORS):
                raise
            raise self._clients.unreachable(error, "did not take records") from error
        self._require_same_topics(producer, topics)
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
        for topic in self._ids.keys() & topics:
            if now.get(topic) != self._ids[topic]:
                self._drop_producer()
                message = f"topic {topic} was deleted, and with it what was sent before."
                raise UnreachableError(message)

    def _open_producer(self) -> Any:
        if self._closed:
            message = f"the connection to Kafka at {self._clients.servers} was closed"
            raise UnreachableError(message)
        if self._producer is None:
            # An operator may raise a topic's limit for what an older release left in a spool.
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
        """Release sockets and threads; an `append` in progress fails."""
        self._closed = True
        self._drop_producer()
