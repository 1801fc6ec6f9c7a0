"""Record batches as bytes, right or lying, and how they get into a topic without a client's checks.

The format is written here from https://kafka.apache.org/documentation/#messageformat, not with the
code that reads it.
"""

import gzip
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import lz4.frame
import snappy
import zstandard
from crc32c import crc32c
from kafka import KafkaConsumer
from kafka.errors import for_code
from kafka.protocol.producer import ProduceRequest

COMPRESS = {
    "none": (0, bytes),
    "gzip": (1, lambda data: gzip.compress(data, mtime=0)),
    "snappy": (2, snappy.compress),
    "lz4": (3, lambda data: lz4.frame.compress(data, block_linked=False)),
    "zstd": (4, zstandard.ZstdCompressor().compress),
}


def varint(number: int) -> bytes:
    """Zigzag, seven bits a byte."""
    left = (number << 1) ^ (number >> 63)
    out = bytearray()
    while left > 0x7F:
        out.append(0x80 | (left & 0x7F))
        left >>= 7
    return bytes([*out, left])


def text(data: bytes | None) -> bytes:
    """Bytes behind their length; None is of length -1."""
    return varint(-1) if data is None else varint(len(data)) + data


def record(
    value: bytes | None,
    key: bytes | None = None,
    *,
    delta: int = 0,
    delta_ms: int = 0,
    headers: bytes = b"\x00",
    longer: int = 0,
) -> bytes:
    """One record; `headers` from their number on, `longer` than it says it is."""
    body = b"\x00" + varint(delta_ms) + varint(delta) + text(key) + text(value) + headers
    return varint(len(body) - longer) + body


def batch(
    records: bytes,
    count: int = 1,
    *,
    codec: int = 0,
    last_delta: int | None = None,
    attributes: int = 0,
    crc_error: int = 0,
    first_ms: int = 0,
    max_ms: int = 0,
    base_offset: int = 0,
) -> bytes:
    """A batch of magic 2 around records that are compressed already."""
    last_delta = count - 1 if last_delta is None else last_delta
    checked = struct.pack(
        ">hiqqqhii", codec | attributes, last_delta, first_ms, max_ms, -1, -1, -1, count
    )
    checked += records
    crc = (crc32c(checked) + crc_error) & 0xFFFFFFFF
    return struct.pack(">qiibI", base_offset, len(checked) + 9, -1, 2, crc) + checked


def bomb(codec: str, size: int) -> bytes:
    """A batch of one record of so many zero bytes, compressed in pieces: it is never whole here."""
    head = b"\x00" + varint(0) + varint(0) + varint(-1) + varint(size)
    head = varint(len(head) + size + 1) + head
    piece = bytes(1 << 20)
    pieces = [head, *[piece] * (size >> 20), bytes(size & 0xFFFFF), b"\x00"]
    number, _ = COMPRESS[codec]
    if codec == "gzip":
        compressor: Any = zlib.compressobj(9, wbits=31)
        data = b"".join([compressor.compress(part) for part in pieces]) + compressor.flush()
    elif codec == "lz4":
        frame = lz4.frame.LZ4FrameCompressor(block_linked=False, block_size=7)
        data = frame.begin() + b"".join([frame.compress(part) for part in pieces]) + frame.flush()
    elif codec == "zstd":
        compressor = zstandard.ZstdCompressor().compressobj()
        data = b"".join([compressor.compress(part) for part in pieces]) + compressor.flush()
    else:
        blocks = [snappy.compress(part) for part in pieces]
        framed = b"".join(struct.pack(">i", len(block)) + block for block in blocks)
        data = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + framed
    return batch(data, codec=number)


def produce(servers: str, topic: str, partition: int, batches: Sequence[bytes]) -> list[int]:
    """Put batches into a topic, each in a request of its own; their offsets. KafkaError."""
    client = KafkaConsumer(bootstrap_servers=servers)
    topics = ProduceRequest.TopicProduceData
    offsets = []
    try:
        manager = client._manager
        client.partitions_for_topic(topic)
        for data in batches:
            request = ProduceRequest(
                transactional_id=None,
                acks=-1,
                timeout_ms=30_000,
                topic_data=[
                    topics(
                        name=topic,
                        partition_data=[topics.PartitionProduceData(index=partition, records=data)],
                    )
                ],
                min_version=3,
                max_version=9,
            )
            response = manager.run(manager.send, request, 1)
            answer = response.responses[0].partition_responses[0]
            if answer.error_code:
                raise for_code(answer.error_code)(answer.error_message)
            offsets.append(int(answer.base_offset))
    finally:
        client.close()
    return offsets
