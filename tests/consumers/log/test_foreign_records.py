"""Records that others left in our topics: keys and values of any bytes, times of any kind."""

import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaProducer

from consumers.fold.parse import parse_record
from consumers.log.kafka_records import LATEST, append_time
from consumers.log.local import LocalLogReader
from consumers.log.open import open_reader
from consumers.log.reader import LogRecord, TopicPartition
from producer.log.kafka import KafkaLog
from producer.log.local import LocalLog
from producer.log.writer import Record
from schemas.decision import lone_stream
from schemas.home import topic_name
from schemas.ids import EPOCH_START
from tests.support.kafka import KafkaService
from tests.support.logs import logged_events
from tests.support.reading import installation_on

STREAM = "rollout/00000000-0000-0000-0000-00000000000a"
KEYS = [None, b"", b"\xff", b"\xfe", b"\\xff", STREAM.encode(), STREAM.encode() + b"\xff", b"\x00"]


def check(records: list[LogRecord]) -> None:
    """Keys name a stream only if they are one; values that are no event are unreadable."""
    parsed = [parse_record(record) for record in records]
    assert [item.envelope for item in parsed] == [None] * len(parsed)
    assert [item.stream for item in parsed] == [
        STREAM
        if key == STREAM.encode()
        else lone_stream(topic_name(record.topic), record.partition, record.value)
        for key, record in zip(KEYS, records, strict=True)
    ]
    for record in records:
        assert type(record.value) is bytes


@pytest.mark.services
def test_keys_of_any_bytes_and_tombstones_are_read_from_kafka(
    kafka: KafkaService, tmp_path: Path
) -> None:
    prefix = "foreign."
    installation = installation_on(kafka.bootstrap_servers, tmp_path, prefix)
    topic = f"{prefix}rollouts"
    KafkaLog(installation, [f"{prefix}training", topic]).close()
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    for key in KEYS:
        # The client sends no record without key and value.
        value = b"" if key is None else None
        producer.send(topic, key=key, value=value, partition=3).get(timeout=30)
    producer.close()
    reader = open_reader(installation)
    at = TopicPartition(topic, 3)
    reader.seek({at: 0})
    records: list[LogRecord] = []
    for _ in range(60):
        records += reader.poll(100, 0.5)
        if len(records) == len(KEYS):
            break
    reader.close()

    assert [record.value for record in records] == [b""] * len(KEYS)
    assert records[0].key is None
    check(records)


def test_keys_of_any_bytes_and_values_of_any_type_are_read_from_a_local_log(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite3"
    log = LocalLog(path)
    log.append([Record("cua.rollouts", STREAM, b"") for _ in KEYS])
    log.close()
    connection = sqlite3.connect(path)
    values = ["text", 7, 1.5, b"\xff", b"", "", b"{}", b"null"]
    for offset, (key, value) in enumerate(zip(KEYS, values, strict=True)):
        connection.execute(
            'UPDATE records SET key = CAST(? AS TEXT), value = ? WHERE "offset" = ?',
            (key or b"", value, offset),
        )
    connection.commit()
    connection.close()
    reader = LocalLogReader(path, topic_prefix="cua.")
    reader.seek(dict.fromkeys(reader.partitions(), 0))

    records = reader.poll(100, 0.0)
    ends = reader.end_offsets(reader.partitions())
    backwards = list(reader.newest_first(dict.fromkeys(ends, 0), ends))
    reader.close()

    assert len(records) == len(KEYS)
    check(records)
    assert backwards == records[::-1]


def test_large_records_of_a_local_log_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    """Thousands of 16 MB, which is what emit takes, would not fit into any memory."""
    path = tmp_path / "log.sqlite3"
    with closing(LocalLog(path)) as log:
        for number in range(18):
            log.append([Record("cua.rollouts", STREAM, bytes([number]) * (8 << 20))])
    reader = LocalLogReader(path, topic_prefix="cua.")
    ends = reader.end_offsets(reader.partitions())
    reader.seek(dict.fromkeys(ends, 0))
    polled = [reader.poll(5_000, 0.0) for _ in range(4)]
    tracemalloc.start()
    newest = next(reader.newest_first(dict.fromkeys(ends, 0), ends))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    reader.close()

    assert [len(records) for records in polled] == [8, 8, 2, 0]
    assert [record.value[0] for records in polled for record in records] == list(range(18))
    assert newest.value[0] == 17
    assert peak_bytes < 3 * (8 << 20)


def test_an_event_under_a_key_that_is_no_text_is_in_a_stream_of_its_own() -> None:
    one = logged_events("a")[0]
    key = one.subject.encode() + b"\xff"
    record = LogRecord("t", 0, 0, key.decode(errors="backslashreplace"), one.value, EPOCH_START)
    parsed = parse_record(record)
    assert (parsed.stream, parsed.envelope) == (lone_stream("t", 0, one.value), None)


@pytest.mark.parametrize("milliseconds", [None, -1, -(2**63), 0])
def test_a_record_without_a_time_was_appended_at_the_beginning(milliseconds: int | None) -> None:
    assert append_time(milliseconds) == EPOCH_START


def test_a_time_beyond_the_calendar_is_its_last_day() -> None:
    assert append_time(2**63 - 1) == LATEST
    assert append_time(1).microsecond == 1000
