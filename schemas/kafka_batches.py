"""Kafka's record batches: read, or one record that says why they cannot be.

A batch that lies about its size, its number of records or their offsets would end a reader, or take
its memory, at the same offset at every start. kafka-python makes the batches; this imports no
kafka. The format: https://kafka.apache.org/documentation/#messageformat
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from schemas.kafka_codecs import DecompressionError, decompress
from schemas.kafka_log import MAX_BATCH_BYTES
from schemas.wire import UNREADABLE_BATCH

HEADER_BYTES = 61
"""Of a batch, before its records."""


FORMAT = 2
"""Of batches since Kafka 0.11, their `magic`."""
MORE = 0x80
"""Of a byte of a number: another follows."""
MOST_SHIFT = 63
"""A number has 64 bits."""


class KafkaRecord(NamedTuple):
    """A record without its headers, which this code does not read and which may be millions."""

    offset: int
    timestamp: int | None
    """Milliseconds since 1970, any number."""
    key: bytes | None
    value: bytes | None


class BatchError(Exception):
    """Why a batch cannot be read."""


def read_batch(batch: Any) -> Iterator[KafkaRecord]:
    """The batch's records in order, read as they are taken. Never raises, but MemoryError.

    From the first one on that cannot be read, the rest of the batch is one record without a key at
    the batch's last offset, which has the reason and is no event.
    """
    try:
        yield from _old_records(batch) if batch.magic < FORMAT else _records(batch)
    except MemoryError:
        raise
    except (BatchError, DecompressionError) as error:
        yield _unreadable(batch, str(error))
    except Exception:  # noqa: BLE001  # one batch's boundary
        yield _unreadable(batch, "its records are damaged")


def last_offset(batch: Any) -> int:
    """Of the batch; offsets of records that compaction took away count."""
    if batch.magic < FORMAT:
        return int(batch.base_offset)
    return int(batch.base_offset + max(0, batch.last_offset_delta))


def _unreadable(batch: Any, problem: str) -> KafkaRecord:
    first, last = batch.base_offset, last_offset(batch)
    timestamp = batch._timestamp if batch.magic < FORMAT else batch.max_timestamp
    text = f"offsets {first} to {last}, {batch.size_in_bytes:,} bytes: {problem}"
    return KafkaRecord(last, timestamp, None, UNREADABLE_BATCH + text.encode())


def _old_records(batch: Any) -> Iterator[KafkaRecord]:
    """Of the formats before Kafka 0.11, which our writers cannot use: only what is one record."""
    if not batch.validate_crc():
        raise BatchError(CHECKSUM)
    if batch.compression_type:
        message = "it is compressed in a format that Kafka replaced in 0.11"
        raise BatchError(message)
    for record in batch:
        yield KafkaRecord(batch.base_offset, record.timestamp, record.key, record.value)


CHECKSUM = "its checksum is wrong, so its bytes are not those that were written"


def _records(batch: Any) -> Iterator[KafkaRecord]:
    """Raises BatchError, DecompressionError, IndexError, ValueError."""
    if not batch.validate_crc():
        raise BatchError(CHECKSUM)
    count, last_delta = batch.records_count, batch.last_offset_delta
    if not 0 <= count <= last_delta + 1:
        message = f"it declares {count} records with {last_delta + 1} offsets"
        raise BatchError(message)
    data = decompress(batch.compression_type, bytes(batch._buffer[HEADER_BYTES:]), MAX_BATCH_BYTES)
    base_offset, first_ms, max_ms = batch.base_offset, batch.first_timestamp, batch.max_timestamp
    has_append_time, size = bool(batch.timestamp_type), len(data)
    end, delta = 0, -1
    for num_left in range(count - 1, -1, -1):
        length, position = _varint(data, end)
        start, end = position, position + length
        if not start < end <= size or (end != size and not num_left):
            message = "a record in it does not have its declared length"
            raise BatchError(message)
        # One byte of attributes, of which Kafka uses none.
        passed_ms, position = _varint(data, start + 1)
        before = delta
        delta, position = _varint(data, position)
        # Each offset once and in order, with room for the records that follow.
        if not before < delta <= last_delta - num_left:
            message = "the offsets of its records are not in order"
            raise BatchError(message)
        key, position = _bytes(data, position)
        value, position = _bytes(data, position)
        if position > end:
            message = "a key or value in it is longer than its record"
            raise BatchError(message)
        yield KafkaRecord(
            base_offset + delta, max_ms if has_append_time else first_ms + passed_ms, key, value
        )


def _bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, start = _varint(data, position)
    if length < 0:
        return None, start
    return data[start : start + length], start + length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A zigzag number and the position behind it. IndexError, ValueError."""
    byte = data[position]
    position += 1
    if byte < MORE:
        return (byte >> 1) ^ -(byte & 1), position
    number, shift = byte & 0x7F, 7
    while byte >= MORE:
        if shift > MOST_SHIFT:
            raise ValueError
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
    return (number >> 1) ^ -(number & 1), position
