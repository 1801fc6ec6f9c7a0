"""What the local log alone does; the rules of both logs are in tests/test_log_contract.py."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from consumers.log.local import LocalLogReader
from consumers.log.reader import TopicPartition
from producer.errors import LogBrokenError
from producer.log.local import LocalLog
from producer.log.writer import Record
from schemas.home import home_partition

TOPICS = ["cua.training", "cua.rollouts"]


def record(key: str, value: bytes) -> Record:
    return Record("cua.rollouts", key, value)


def test_append_time_never_falls_although_the_clock_does(tmp_path: Path) -> None:
    ticks = iter([5_000_000, 3_000_000, 7_000_000])
    log = LocalLog(tmp_path / "log.sqlite3", topics=TOPICS, clock_us=lambda: next(ticks))
    for value in (b"1", b"2", b"3"):
        log.append([record("rollout/a", value)])
    reader = LocalLogReader(log.path, topic_prefix="cua.")
    reader.seek(dict.fromkeys(reader.partitions(), 0))
    start = datetime(1970, 1, 1, tzinfo=UTC)
    assert [read.appended_at for read in reader.poll(10, 0)] == [
        start + timedelta(seconds=s) for s in (5, 5, 7)
    ]
    place = TopicPartition("cua.rollouts", home_partition("rollout/a", 12))
    assert reader.offsets_for_time([place], start + timedelta(seconds=5)) == {place: 0}
    assert reader.offsets_for_time([place], start + timedelta(seconds=6)) == {place: 2}
    assert reader.offsets_for_time([place], start + timedelta(seconds=8)) == {place: 3}
    reader.close()
    log.close()


def test_a_log_that_is_not_there_yet_is_empty_and_watched(tmp_path: Path) -> None:
    path = tmp_path / "log" / "log.sqlite3"
    reader = LocalLogReader(path, topic_prefix="cua.")
    assert reader.partitions() == []
    assert reader.log_id == ""
    assert not path.exists()
    log = LocalLog(path, topics=TOPICS)
    log.append([record("rollout/a", b"1")])
    assert len(reader.partitions()) == 24
    assert reader.log_id == log.log_id
    reader.seek(dict.fromkeys(reader.partitions(), 0))
    assert [read.value for read in reader.poll(10, 1)] == [b"1"]
    reader.close()
    log.close()


def test_a_reader_gets_every_record_from_its_positions_on_and_no_other_place(
    tmp_path: Path,
) -> None:
    log = LocalLog(tmp_path / "log.sqlite3", topics=TOPICS)
    keys = ["rollout/a", "rollout/b", "rollout/d"]
    assert len({home_partition(key, 12) for key in keys}) == 3
    log.append([record(key, f"{key}:{number}".encode()) for number in range(100) for key in keys])
    place_a, place_b = (TopicPartition("cua.rollouts", home_partition(key, 12)) for key in keys[:2])
    reader = LocalLogReader(log.path, topic_prefix="cua.")
    reader.seek({place_a: 98, place_b: 40})
    read = []
    while batch := reader.poll(7, 0):
        assert len(batch) <= 7
        read += batch
    assert [r.value for r in read if r.partition == place_a.partition] == [
        b"rollout/a:98",
        b"rollout/a:99",
    ]
    assert [r.offset for r in read if r.partition == place_b.partition] == list(range(40, 100))
    assert {r.partition for r in read} == {place_a.partition, place_b.partition}
    reader.close()
    log.close()


def test_a_topic_that_the_log_gets_later_is_not_read_until_it_is_asked_for(tmp_path: Path) -> None:
    first = LocalLog(tmp_path / "log.sqlite3", topics=["cua.training"])
    reader = LocalLogReader(first.path, topic_prefix="cua.")
    reader.seek(dict.fromkeys(reader.partitions(), 0))
    both = LocalLog(tmp_path / "log.sqlite3", topics=TOPICS)
    both.append([record("rollout/a", b"1")])
    assert reader.poll(10, 0) == []
    reader.seek(dict.fromkeys(reader.partitions(), 0))
    assert [read.value for read in reader.poll(10, 0)] == [b"1"]
    for each in (reader, first, both):
        each.close()


def test_a_log_whose_file_was_removed_cannot_be_read_either(tmp_path: Path) -> None:
    log = LocalLog(tmp_path / "log.sqlite3", topics=TOPICS)
    (tmp_path / "log.sqlite3").unlink()
    with pytest.raises(LogBrokenError, match="cannot be read"):
        log.ends()
    with pytest.raises(LogBrokenError, match="cannot be read"):
        list(log.read_topic("cua.rollouts", {}))
    log.close()
