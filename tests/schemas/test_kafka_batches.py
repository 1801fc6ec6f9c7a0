"""A batch of Kafka is read, or is one unreadable record at its last offset; none ends a reader.

Batches are made by hand (`tests.support.kafka_batches`) or by kafka-python's own builder.
"""

import struct
import time
import tracemalloc
import zlib
from typing import Any

import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from schemas.kafka_batches import KafkaRecord, last_offset, read_batch
from schemas.kafka_log import MAX_BATCH_BYTES, MAX_MESSAGE_BYTES
from schemas.wire import UNREADABLE_BATCH, UnreadableError, read_envelope
from tests.support.kafka_batches import COMPRESS, batch, bomb, record, text, varint

MIB = 1 << 20


def read(data: bytes) -> list[KafkaRecord]:
    return list(read_batch(parsed(data)))


def parsed(data: bytes) -> Any:
    return MemoryRecords(data).next_batch()


def unreadable(data: bytes) -> tuple[int, str]:
    """The offset and the reason of the only record."""
    (one,) = read(data)
    assert one.key is None
    assert one.offset == last_offset(parsed(data))
    with pytest.raises(UnreadableError) as error:
        read_envelope(one.value or b"")
    assert str(error.value).startswith(UNREADABLE_BATCH.decode())
    return one.offset, str(error.value).rpartition(": ")[2]


RECORDS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=300),
        st.none() | st.binary(max_size=300),
        st.integers(0, 2**62),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
    ),
    min_size=1,
    max_size=30,
)


@given(RECORDS, st.integers(0, 4))
def test_what_a_right_client_writes_is_read_as_kafka_python_reads_it(
    records: list[Any], codec: int
) -> None:
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 20)
    for offset, (key, value, milliseconds, headers) in enumerate(records):
        builder.append(offset, milliseconds, key, value, headers)
    data = bytes(builder.build())
    theirs = [
        KafkaRecord(item.offset, item.timestamp, item.key, item.value) for item in parsed(data)
    ]
    assert read(data) == theirs
    assert [(their.key, their.value) for their in theirs] == [item[:2] for item in records]


@pytest.mark.parametrize("codec", COMPRESS)
def test_the_largest_record_of_ours_is_read_in_every_codec(codec: str) -> None:
    value = b"0123456789abcdef" * (MAX_MESSAGE_BYTES // 16)
    number, compress = COMPRESS[codec]
    (one,) = read(batch(compress(record(value, b"k")), codec=number))
    assert (one.key, one.value) == (b"k", value)


@pytest.mark.parametrize("codec", ["gzip", "lz4", "snappy", "zstd"])
def test_a_bomb_takes_no_more_memory_than_twice_the_limit(codec: str) -> None:
    data = bomb(codec, 160 * MIB)
    tracemalloc.start()
    offset, problem = unreadable(data)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert offset == 0
    assert problem == "it holds more than 32 MiB of records, which no writer of ours makes"
    assert peak_bytes < 2 * MAX_BATCH_BYTES + 4 * len(data) + MIB


def test_the_limit_is_on_the_records_of_the_batch() -> None:
    number, compress = COMPRESS["gzip"]
    overhead = len(record(bytes(30 * MIB))) - 30 * MIB
    most = record(bytes(MAX_BATCH_BYTES - overhead))
    assert len(most) == MAX_BATCH_BYTES
    assert len(read(batch(compress(most), codec=number))[0].value or b"") > 31 * MIB
    unreadable(batch(compress(record(bytes(MAX_BATCH_BYTES - overhead + 1))), codec=number))


ORDER = "the offsets of its records are not in order"
ENDS = "a record in it does not have its declared length"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (batch(record(b"x"), crc_error=1), "so its bytes are not those that were written"),
        (batch(record(b"x", delta=1), 2**31 - 1), ORDER),
        (batch(record(b"x"), -1), "it declares -1 records with -1 offsets"),
        (batch(record(b"x"), 3, last_delta=1), "it declares 3 records with 2 offsets"),
        (batch(record(b"x") + record(b"y", delta=1), 1), ENDS),
        (batch(record(b"x", longer=1)), ENDS),
        (batch(record(b"x", longer=-1)), ENDS),
        (batch(record(b"x", longer=-(2**40))), ENDS),
        (batch(record(b"x", longer=100)), ENDS),
        (batch(record(b"x", delta=1)), ORDER),
        (batch(record(b"x", delta=10**6)), ORDER),
        (batch(record(b"x", delta=-5)), ORDER),
        (batch(b"", 1), "its records are damaged"),
        (batch(b"\xff" * 30, 1), "its records are damaged"),
        # A length of eleven bytes, where ten are 64 bits; one of a million would take hours.
        (batch(b"\x8e" + b"\x80" * 9 + b"\x00" + record(b"x")[1:]), "its records are damaged"),
        (batch(record(b"x"), codec=5), "Kafka has no codec 5"),
        (batch(record(b"x"), codec=1), "its gzip data are damaged"),
        (batch(record(b"x"), codec=2), "its Snappy data are damaged"),
        (batch(record(b"x"), codec=3), "its LZ4 data are damaged"),
        (batch(record(b"x"), codec=4), "its Zstandard data are damaged"),
        (batch(zlib.compress(record(b"x"), wbits=31)[:-4], codec=1), "its gzip data are damaged"),
        (batch(lz4.frame.compress(record(b"x"))[:-4], codec=3), "its LZ4 data are damaged"),
        (
            batch(b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, -4), codec=2),
            "its Snappy data are damaged",
        ),
        (
            batch(varint(20) + b"\x00\x00\x00" + varint(2**31 - 1) + bytes(12)),
            "its records are damaged",
        ),
        (
            batch(varint(9) + b"\x00\x00\x00" + text(None) + varint(50) + bytes(4)),
            "a key or value in it is longer than its record",
        ),
    ],
)
def test_a_batch_that_lies_is_one_record_that_says_so(data: bytes, problem: str) -> None:
    assert unreadable(data)[1].endswith(problem)


def test_records_before_the_lie_are_read_and_no_offset_is_given_twice() -> None:
    lies = record(b"a") + record(b"b", delta=1) + record(b"c", delta=1)
    found = read(batch(lies, 3, base_offset=70))
    assert [(item.offset, item.value) for item in found[:2]] == [(70, b"a"), (71, b"b")]
    assert [item.offset for item in found] == [70, 71, 72]
    jump = record(b"a") + record(b"b", delta=2) + record(b"c", delta=1)
    assert [item.offset for item in read(batch(jump, 3, base_offset=70))] == [70, 72]


def test_offsets_that_compaction_left_out_are_no_lie() -> None:
    left = record(b"b", delta=2) + record(b"c", delta=5)
    found = read(batch(left, 2, last_delta=9, base_offset=100))
    assert [(item.offset, item.value) for item in found] == [(102, b"b"), (105, b"c")]
    assert read(batch(b"", 0, last_delta=9)) == []


@pytest.mark.parametrize(
    "headers",
    [
        varint(1) + text(b"\xff\xfe") + text(None),
        varint(5 * MIB) + (text(b"") + text(None)) * (5 * MIB),
        varint(1000),
        varint(-1),
    ],
    ids=["not-utf8", "millions", "number-too-high", "number-negative"],
)
def test_headers_are_not_read(headers: bytes) -> None:
    data = batch(record(b"value", b"key", headers=headers))
    tracemalloc.start()
    assert [(item.key, item.value) for item in read(data)] == [(b"key", b"value")]
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 6 * len(data) + MIB


@pytest.mark.parametrize("codec", ["gzip", "lz4"])
def test_what_follows_compressed_records_is_ignored_as_brokers_ignore_it(codec: str) -> None:
    number, compress = COMPRESS[codec]
    data = batch(compress(record(b"x")) + b"garbage", codec=number)
    assert [item.value for item in read(data)] == [b"x"]


def test_gzip_data_may_have_several_members_but_not_hundreds_of_thousands() -> None:
    """Each of them copies the rest: 700,000 empty ones of 16 MB would copy for hours."""
    _, compress = COMPRESS["gzip"]
    parts = compress(record(b"x")) + compress(record(b"y", delta=1))
    assert [item.value for item in read(batch(parts, 2, codec=1))] == [b"x", b"y"]
    began = time.process_time()
    assert unreadable(batch(compress(b"") * 500_000, codec=1))[1] == "its records are damaged"
    assert time.process_time() - began < 2


def test_times_are_any_number() -> None:
    largest = batch(record(b"x", delta_ms=2**62), first_ms=2**63 - 1, max_ms=2**63 - 1)
    assert [item.timestamp for item in read(largest)] == [2**63 - 1 + 2**62]
    appended = batch(record(b"x", delta_ms=7), attributes=8, first_ms=5, max_ms=-(2**63))
    assert [item.timestamp for item in read(appended)] == [-(2**63)]


@pytest.mark.parametrize("magic", [0, 1])
def test_of_formats_before_kafka_0_11_only_single_records_are_read(magic: int) -> None:
    plain = LegacyRecordBatchBuilder(magic, 0, 1 << 20)
    plain.append(0, 12, b"k", b"v")
    found = read(bytes(plain.build()))
    assert [(item.offset, item.key, item.value) for item in found] == [(0, b"k", b"v")]
    compressed = LegacyRecordBatchBuilder(magic, 1, 1 << 20)
    compressed.append(0, 12, b"k", b"v")
    compressed.append(1, 12, b"k", b"v")
    nested = bytes(compressed.build())
    assert unreadable(nested)[1] == "it is compressed in a format that Kafka replaced in 0.11"
    wrong = bytearray(plain.build())
    wrong[-1] ^= 1
    assert unreadable(bytes(wrong))[1].startswith("its checksum is wrong")


@given(st.binary(min_size=61, max_size=300), st.integers(0, 7), st.integers(-2, 5))
def test_garbage_is_read_or_one_unreadable_record(garbage: bytes, codec: int, count: int) -> None:
    data = batch(garbage, count, codec=codec, last_delta=4, base_offset=10)
    found = read(data)
    assert all(type(item.value) is bytes or item.value is None for item in found)
    offsets = [item.offset for item in found]
    assert offsets == sorted(set(offsets))
    assert set(offsets) <= set(range(10, 15))


@given(st.data())
def test_a_flipped_bit_in_compressed_records_is_read_or_unreadable(data: st.DataObject) -> None:
    """Past the checksum, as a client computes it over what it made."""
    codec, compress = COMPRESS[data.draw(st.sampled_from(["gzip", "snappy", "lz4", "zstd"]))]
    records = bytearray(compress(record(b"x" * 2_000) + record(b"y" * 2_000, delta=1)))
    bit = data.draw(st.integers(0, 8 * len(records) - 1))
    records[bit // 8] ^= 1 << bit % 8
    found = read(batch(bytes(records), 2, codec=codec))
    offsets = [item.offset for item in found]
    assert offsets in ([0, 1], [1])
