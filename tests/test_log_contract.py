"""Rules of LogWriter and LogReader that both logs keep: the local file, and a real Kafka."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import pytest

from consumers.errors import MismatchError
from consumers.log.open import open_reader
from consumers.log.reader import LastRecord, LogReader, LogRecord, TopicPartition
from consumers.tail.reading import read_bounded, read_newest_first
from producer.log.kafka import KafkaLog
from producer.log.local import LocalLog
from producer.log.writer import LogWriter, Record
from producer.log.writer import TopicPartition as ProducerPartition
from schemas.home import home_partition
from tests.support.reading import installation_on

KEYS = [f"rollout/{number}" for number in range(40)]

Pair = tuple[LogWriter, LogReader]


@pytest.fixture(params=["local", pytest.param("kafka", marks=pytest.mark.services)])
def open_log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Pair]]:
    """Opens a writer and a reader of one log, fresh for each test; closes them."""
    opened: list[LogWriter | LogReader] = []
    is_kafka = request.param == "kafka"
    servers = request.getfixturevalue("kafka").bootstrap_servers if is_kafka else None
    # Topics of their own make a log of its own on the one broker.
    prefix = f"t{abs(hash(tmp_path))}." if is_kafka else "cua."
    installation = installation_on(servers, tmp_path, prefix)

    def open_both() -> Pair:
        topics = [prefix + name for name in ("training", "rollouts")]
        writer: LogWriter = (
            KafkaLog(installation, topics)
            if is_kafka
            else LocalLog(installation.local_log_path, topics=topics)
        )
        reader = open_reader(installation)
        opened.extend([reader, writer])
        return writer, reader

    yield open_both
    for each in opened:
        each.close()
        each.close()


def rollouts(reader: LogReader) -> str:
    return next(tp.topic for tp in reader.partitions() if tp.topic.endswith("rollouts"))


def read(reader: LogReader, count: int) -> list[LogRecord]:
    records: list[LogRecord] = []
    deadline = datetime.now(UTC) + timedelta(seconds=20)
    while len(records) < count and datetime.now(UTC) < deadline:
        records += reader.poll(7, 1)
    return records


def test_what_was_appended_is_read_at_its_coordinates_in_order_and_nothing_else(
    open_log: Callable[[], Pair],
) -> None:
    writer, reader = open_log()
    topic = rollouts(reader)
    records = [
        Record(topic, key, f"{key}:{number}".encode()) for number in range(5) for key in KEYS
    ]
    coordinates = writer.append(records)
    reader.seek(dict.fromkeys(reader.partitions(), 0))
    found = read(reader, len(records))
    assert reader.poll(10, 0.1) == []
    assert {(r.topic, r.partition, r.offset): (r.key, r.value) for r in found} == {
        tuple(at): (record.key, record.value)
        for at, record in zip(coordinates, records, strict=True)
    }
    for tp in reader.partitions():
        offsets = [r.offset for r in found if (r.topic, r.partition) == tp]
        assert offsets == list(range(len(offsets)))
        times = [r.appended_at for r in found if (r.topic, r.partition) == tp]
        assert times == sorted(times)


def test_both_sides_name_the_log_and_its_twelve_partitions_a_topic_alike(
    open_log: Callable[[], Pair],
) -> None:
    writer, reader = open_log()
    assert reader.log_id == writer.log_id != ""
    assert len(reader.partitions()) == 24
    assert {tp.partition for tp in reader.partitions()} == set(range(12))


def values(
    writer: LogWriter, topic: str, key: str, since: Mapping[ProducerPartition, int]
) -> list[bytes]:
    read = list(writer.read_streams(topic, [key], since))
    assert {found for found, _ in read} <= {key}
    return [value for _, value in read]


def test_a_stream_is_read_back_in_order_from_lower_bounds_on(open_log: Callable[[], Pair]) -> None:
    writer, reader = open_log()
    topic = rollouts(reader)
    writer.append([Record(topic, key, b"old") for key in KEYS])
    since = writer.ends()
    writer.append([Record(topic, key, str(number).encode()) for number in range(3) for key in KEYS])
    assert values(writer, topic, "rollout/7", {}) == [b"old", b"0", b"1", b"2"]
    assert values(writer, topic, "rollout/7", since) == [b"0", b"1", b"2"]
    several = list(writer.read_streams(topic, ["rollout/7", "rollout/8"], since))
    assert [value for key, value in several if key == "rollout/8"] == [b"0", b"1", b"2"]
    assert {key for key, _ in several} == {"rollout/7", "rollout/8"}
    assert values(writer, topic, "rollout/unknown", {}) == []


def test_ends_and_beginnings_count_the_records(open_log: Callable[[], Pair]) -> None:
    writer, reader = open_log()
    topic = rollouts(reader)
    writer.append([Record(topic, "rollout/7", b"x")] * 3)
    at = TopicPartition(topic, home_partition("rollout/7", 12))
    assert {tp: end for tp, end in reader.end_offsets(reader.partitions()).items() if end} == {
        at: 3
    }
    assert set(reader.beginning_offsets(reader.partitions()).values()) == {0}
    assert {tuple(tp): end for tp, end in writer.ends().items()} == {
        tuple(p): e for p, e in reader.end_offsets(reader.partitions()).items()
    }


def test_time_finds_the_first_record_appended_then_or_later(open_log: Callable[[], Pair]) -> None:
    writer, reader = open_log()
    topic = rollouts(reader)
    for value in (b"1", b"2", b"3"):
        writer.append([Record(topic, "rollout/7", value)])
    at = TopicPartition(topic, home_partition("rollout/7", 12))
    reader.seek({at: 0})
    times = [record.appended_at for record in read(reader, 3)]
    for offset, time in enumerate(times):
        assert reader.offsets_for_time([at], time)[at] == times.index(time) <= offset
    assert reader.offsets_for_time([at], times[-1] + timedelta(seconds=1)) == {at: 3}
    assert reader.offsets_for_time([at], times[0] - timedelta(days=1)) == {at: 0}


def test_a_record_in_the_place_of_one_that_was_read_is_told_by_its_time(
    open_log: Callable[[], Pair],
) -> None:
    """What a log has that was restored from an older state, and has grown since."""
    writer, reader = open_log()
    topic = rollouts(reader)
    writer.append([Record(topic, key, b"one") for key in KEYS])
    writer.append([Record(topic, key, b"two") for key in KEYS])
    reader.seek(dict.fromkeys(reader.partitions(), 0))
    records = read(reader, 2 * len(KEYS))
    reader.close()  # Kafka's may know nothing but the topic that it is asked about.
    last = {
        TopicPartition(record.topic, record.partition): LastRecord(
            record.offset + 1, record.appended_at
        )
        for record in records
    }
    assert len(last) == 12
    assert reader.replaced(last) == {}
    assert min(reader.beginning_offsets(reader.partitions()).values()) == 0
    assert reader.replaced({}) == {}

    for step in (timedelta(milliseconds=-1), timedelta(milliseconds=1), timedelta(days=-9)):
        moved = {tp: one._replace(appended_at=one.appended_at + step) for tp, one in last.items()}
        assert reader.replaced(moved) == {tp: one.appended_at for tp, one in last.items()}

    one, *others = sorted(last)
    mixed = last | {one: moved[one]}
    assert reader.replaced(mixed) == {one: last[one].appended_at}
    beyond = {tp: LastRecord(10**9, moved[tp].appended_at) for tp in others}
    assert reader.replaced(beyond) == {}

    reader.seek(dict.fromkeys(reader.partitions(), 0))
    assert sorted(read(reader, len(records))) == sorted(records)


def test_a_position_that_the_log_cannot_have_is_refused(open_log: Callable[[], Pair]) -> None:
    writer, reader = open_log()
    topic = rollouts(reader)
    writer.append([Record(topic, "rollout/7", b"x")])
    at = TopicPartition(topic, home_partition("rollout/7", 12))
    messages = {"local": "has offsets 0 to 1, not 2", "kafka": "ends at 1: this is another log"}
    with pytest.raises(MismatchError, match=messages[reader.kind]):
        reader.seek({at: 2})


def test_a_reader_that_waits_gets_what_comes(open_log: Callable[[], Pair]) -> None:
    writer, reader = open_log()
    topic = rollouts(reader)
    reader.seek(reader.end_offsets(reader.partitions()))
    assert reader.poll(10, 0.05) == []
    writer.append([Record(topic, "rollout/7", b"late")])
    assert [record.value for record in read(reader, 1)] == [b"late"]


def test_a_bounded_reading_merges_partitions_by_append_time_and_stops_where_told(
    open_log: Callable[[], Pair],
) -> None:
    writer, reader = open_log()
    topic = rollouts(reader)
    for number in range(4):
        writer.append([Record(topic, key, f"{key}:{number}".encode()) for key in KEYS])
    ends = reader.end_offsets(reader.partitions())
    writer.append([Record(topic, KEYS[0], b"later")])
    starts = {tp: min(1, end) for tp, end in ends.items()}
    found = list(read_bounded(reader, starts, ends))
    assert [record.appended_at for record in found] == sorted(
        record.appended_at for record in found
    )
    assert {(r.topic, r.partition, r.offset) for r in found} == {
        (*tp, offset) for tp, end in ends.items() for offset in range(starts[tp], end)
    }


def test_reading_newest_first_is_reading_in_order_backwards(open_log: Callable[[], Pair]) -> None:
    writer, reader = open_log()
    topic = rollouts(reader)
    for number in range(4):
        batch = [Record(topic, key, f"{key}:{number}".encode()) for key in KEYS]
        # One partition is much longer than one window of reading backwards.
        writer.append([*batch, *[Record(topic, KEYS[0], b"more")] * 30])
    ends = reader.end_offsets(reader.partitions())
    writer.append([Record(topic, KEYS[0], b"later")])
    starts = {tp: min(1, end) for tp, end in ends.items()}
    in_order = list(read_bounded(reader, starts, ends))
    assert list(read_newest_first(reader, starts, ends)) == in_order[::-1]
    assert list(islice(read_newest_first(reader, starts, ends), 7)) == in_order[:-8:-1]
    assert list(read_newest_first(reader, ends, ends)) == []
