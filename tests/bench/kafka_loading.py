"""Loads many records into Kafka in minutes: record batches made here, sent as they are.

kafka-python makes a future, a header and a buffer of every record, some 60 microseconds; here it is
under 10. The batches are what a producer of it would send: version 2, lz4, keys, one header.
"""

import socket
import struct
import time
from collections.abc import Sequence

import crc32c
import lz4.frame

from producer.log.kafka_sending import HEADERS
from producer.log.writer import Record

BATCH_BYTES = 128 << 10
"""Of records, uncompressed, as `producer.log.kafka` sends them."""
LZ4 = 3
PRODUCE, PRODUCE_VERSION = 0, 3
NO_LEADER_YET = frozenset({3, 6})
"""Error codes of a partition of a topic that was just made."""
LEADER_TIMEOUT_S = 10.0
BATCH = struct.Struct(">hiqqqhii")
"""Attributes, last offset delta, first and last time, producer id and epoch, sequence, count."""


class KafkaLoader:
    """One connection to a broker that leads every partition; a context manager."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), 60)
        self._number = 0

    def __enter__(self) -> "KafkaLoader":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def append(
        self, topic: str, partition: int, records: Sequence[Record], time_ms: int | None = None
    ) -> int:
        """Append records, acknowledged; the first one's offset.

        `time_ms`: of their batches, since 1970, as far as the topic takes it; None: now.
        """
        first = -1
        time_ms = int(time.time() * 1000) if time_ms is None else time_ms
        waiting: list[bytes] = []
        size = 0
        batches = []
        for record in records:
            waiting.append(_record(len(waiting), record.key.encode(), record.value))
            size += len(waiting[-1])
            if size > BATCH_BYTES:
                batches.append(waiting)
                waiting, size = [], 0
        for batch in [*batches, waiting]:
            if batch:
                offset = self._append(topic, partition, _batch(batch, time_ms))
                first = offset if first < 0 else first
        return first

    def _append(self, topic: str, partition: int, batch: bytes) -> int:
        deadline = time.monotonic() + LEADER_TIMEOUT_S
        while True:
            error, offset = self._produce(topic, partition, batch)
            if error not in NO_LEADER_YET or time.monotonic() > deadline:
                assert error == 0, f"Kafka answered with error {error}"
                return offset
            time.sleep(0.05)

    def _produce(self, topic: str, partition: int, batch: bytes) -> tuple[int, int]:
        """Kafka's error code and the offset of the batch."""
        self._number += 1
        name = topic.encode()
        body = (
            struct.pack(">hhih", PRODUCE, PRODUCE_VERSION, self._number, -1)
            + struct.pack(">hhii", -1, 1, 60_000, 1)
            + struct.pack(">h", len(name))
            + name
            + struct.pack(">iii", 1, partition, len(batch))
            + batch
        )
        self._socket.sendall(struct.pack(">i", len(body)) + body)
        answer = self._receive(struct.unpack(">i", self._receive(4))[0])
        # Correlation, number of topics, the topic's name, number of partitions, then ours.
        error, offset = struct.unpack_from(">hq", answer, 4 + 4 + 2 + len(name) + 4 + 4)
        return int(error), int(offset)

    def _receive(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            piece = self._socket.recv(size - len(found))
            assert piece, "Kafka closed the connection"
            found += piece
        return found


def _batch(records: list[bytes], time_ms: int) -> bytes:
    content: bytes = BATCH.pack(
        LZ4, len(records) - 1, time_ms, time_ms, -1, -1, -1, len(records)
    ) + lz4.frame.compress(b"".join(records), block_linked=False)
    checked = struct.pack(">ibI", -1, 2, crc32c.crc32c(content)) + content
    return struct.pack(">qi", 0, len(checked)) + checked


def _varint(number: int) -> bytes:
    zigzag = number << 1
    found = bytearray()
    while zigzag > 0x7F:  # seven bits a byte
        found.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    found.append(zigzag)
    return bytes(found)


_VARINTS = [_varint(number) for number in range(1 << 14)]
_ENDING = _varint(len(HEADERS)) + b"".join(
    _varint(len(name)) + name.encode() + _varint(len(value)) + value for name, value in HEADERS
)


def _record(number: int, key: bytes, value: bytes) -> bytes:
    length = _VARINTS[len(value)] if len(value) < len(_VARINTS) else _varint(len(value))
    content = b"".join((b"\0\0", _VARINTS[number], _VARINTS[len(key)], key, length, value, _ENDING))
    return _varint(len(content)) + content
