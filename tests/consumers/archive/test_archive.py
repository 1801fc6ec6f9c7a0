"""An archive and the rest of the log are one log: nothing is missing, nothing is there twice."""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from kafka import KafkaAdminClient
from kafka import TopicPartition as KafkaPartition

from consumers.archive.manifest import read_manifest
from consumers.archive.reader import ArchivedLogReader
from consumers.archive.write import archive, check_archive
from consumers.cli import cli
from consumers.errors import CuaProjectError, MismatchError, UsageError
from consumers.home import open_installation
from consumers.log.local import LocalLogReader
from consumers.log.open import open_reader
from consumers.log.reader import LogReader, LogRecord, TopicPartition
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.rebuild import compare, rebuild
from consumers.rebuild.verify import verify
from producer.log.kafka import KafkaLog
from producer.log.writer import Record
from schemas.catalogue import TOPIC_NAMES, topic_of
from tests.reference_fold.histories import LoggedEvent
from tests.support.kafka import KafkaService
from tests.support.logs import write_local_log
from tests.support.reading import installation_on

READ_WITHIN_S = 60.0


@contextlib.contextmanager
def opened(path: Path) -> Iterator[LocalLogReader]:
    reader = LocalLogReader(path, topic_prefix="cua.")
    try:
        yield reader
    finally:
        reader.close()


def delete_until(path: Path, position: int) -> None:
    """What retention does: the first records of the whole log are gone."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM records WHERE position < ?", (position,))


def read_all(reader: LogReader, timeout_s: float = 0.0) -> list[LogRecord]:
    """Until its end: Kafka answers some polls with nothing before that."""
    partitions = reader.partitions()
    reader.seek(reader.beginning_offsets(partitions))
    ends = reader.end_offsets(partitions)
    total = sum(ends.values())
    records: list[LogRecord] = []
    deadline = time.monotonic() + READ_WITHIN_S
    while any(reader.positions()[at] < end for at, end in ends.items()):
        records += reader.poll(7, timeout_s)
        assert len(records) <= total
        assert time.monotonic() < deadline, f"{len(records)} of {total} records"
    assert not reader.poll(7, 0.0)
    return records


def by_partition(records: list[LogRecord]) -> dict[TopicPartition, list[LogRecord]]:
    found: dict[TopicPartition, list[LogRecord]] = {}
    for record in records:
        found.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
    return found


@pytest.mark.parametrize("deleted", [0, 1, 40, 10_000])
def test_archive_and_log_have_every_record_of_the_log_in_order_and_none_twice(
    tmp_path: Path, log: Path, deleted: int
) -> None:
    with opened(log) as reader:
        whole = read_all(reader)
        archive(reader, tmp_path / "archive")
    delete_until(log, deleted)

    with opened(log) as reader:
        found = read_all(ArchivedLogReader(reader, tmp_path / "archive"))

    assert by_partition(found) == by_partition(whole)


def test_each_run_adds_what_is_new_and_the_manifest_names_offsets_and_hashes(
    tmp_path: Path, events: list[LoggedEvent]
) -> None:
    path, folder = tmp_path / "log.sqlite3", tmp_path / "archive"
    sizes = []
    for part in (events[:30], events[30:31], [], events[31:]):
        write_local_log(path, part)
        with opened(path) as reader:
            sizes.append(archive(reader, folder).events)
            ends = {at: end for at, end in reader.end_offsets(reader.partitions()).items() if end}

    assert sizes == [30, 1, 0, len(events) - 31]
    manifest = check_archive(folder)
    assert manifest.ends() == ends
    assert sum(file.num_records for file in manifest.files) == len(events)
    names = {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}
    assert {file.path for file in manifest.files} == names
    first = manifest.files[0]
    table = pq.read_table(folder / first.path)
    assert table.column_names == ["offset", "appended_at", "key", "value"]
    assert table["offset"].to_pylist() == list(range(first.first_offset, first.next_offset))


def test_a_time_is_found_in_the_archive_as_in_the_log(tmp_path: Path, log: Path) -> None:
    with opened(log) as reader:
        moment = read_all(reader)[50].appended_at
        expected = reader.offsets_for_time(reader.partitions(), moment)
        archive(reader, tmp_path / "archive")
    delete_until(log, 100)

    with opened(log) as reader:
        both = ArchivedLogReader(reader, tmp_path / "archive")
        assert both.offsets_for_time(both.partitions(), moment) == expected


def test_records_deleted_before_they_were_archived_are_an_error_not_a_hole(
    tmp_path: Path, events: list[LoggedEvent]
) -> None:
    path, folder = tmp_path / "log.sqlite3", tmp_path / "archive"
    write_local_log(path, events[:50])
    with opened(path) as reader:
        archive(reader, folder)
    write_local_log(path, events[50:])
    delete_until(path, 80)

    with opened(path) as reader:
        with pytest.raises(CuaProjectError, match="deleted before they were archived"):
            archive(reader, folder)
        with pytest.raises(CuaProjectError, match="deleted before they were archived"):
            ArchivedLogReader(reader, folder)


def test_another_logs_archive_is_refused(
    tmp_path: Path, log: Path, events: list[LoggedEvent]
) -> None:
    other = tmp_path / "other.sqlite3"
    write_local_log(other, events[:20])
    with opened(log) as reader:
        archive(reader, tmp_path / "archive")

    with opened(other) as reader:
        with pytest.raises(MismatchError, match="is the archive of the log"):
            archive(reader, tmp_path / "archive")
        with pytest.raises(MismatchError, match="is the archive of the log"):
            ArchivedLogReader(reader, tmp_path / "archive")


def test_a_log_that_is_shorter_than_its_archive_was_truncated(tmp_path: Path, log: Path) -> None:
    with opened(log) as reader:
        archive(reader, tmp_path / "archive")
    with contextlib.closing(sqlite3.connect(log)) as connection, connection:
        connection.execute("UPDATE partitions SET next_offset = next_offset - 1 WHERE next_offset")

    with opened(log) as reader, pytest.raises(MismatchError, match="truncated"):
        ArchivedLogReader(reader, tmp_path / "archive")


def test_the_archive_of_a_log_that_was_restored_since_is_neither_continued_nor_read(
    tmp_path: Path, log: Path, events: list[LoggedEvent]
) -> None:
    """Its offsets mean other records; the rest of the log would go on with what it never had."""
    older, folder = tmp_path / "older", tmp_path / "archive"
    shutil.copy(log, older)
    write_local_log(log, events)
    with opened(log) as reader:
        archive(reader, folder)
    older.replace(log)

    with (
        opened(log) as reader,
        pytest.raises(MismatchError, match=r"but the log ends at .* restored from an older state"),
    ):
        archive(reader, folder)
    write_local_log(log, [*events, *events])
    with opened(log) as reader:
        with pytest.raises(MismatchError, match=r"and has grown since\. Name another archive"):
            archive(reader, folder)
        with pytest.raises(MismatchError, match=r"and has grown since\. Name another archive"):
            ArchivedLogReader(reader, folder)
    assert check_archive(folder) == read_manifest(folder)


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "its sha256 differs"),
        (lambda path: path.write_bytes(b""), "its sha256 differs"),
        (lambda path: path.unlink(), "lacks its file"),
    ],
    ids=["cut", "empty", "missing"],
)
def test_a_damaged_file_is_named_by_check_and_by_reading(
    tmp_path: Path, log: Path, damage: object, found: str
) -> None:
    folder = tmp_path / "archive"
    with opened(log) as reader:
        archive(reader, folder)
    file = read_manifest(folder).files[3]
    assert callable(damage)
    damage(folder / file.path)

    with pytest.raises(MismatchError, match=re.escape(file.path)):
        check_archive(folder)
    with opened(log) as reader, pytest.raises(MismatchError, match=found):
        read_all(ArchivedLogReader(reader, folder))


def test_a_folder_with_other_things_is_not_taken_for_an_archive(tmp_path: Path, log: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    with opened(log) as reader:
        with pytest.raises(UsageError, match="not empty and no archive"):
            archive(reader, tmp_path / "letters")
        with pytest.raises(UsageError, match="cannot be used"):
            archive(reader, tmp_path / "file")
        with pytest.raises(UsageError, match="no archive"):
            ArchivedLogReader(reader, tmp_path / "letters")
    assert [path.name for path in (tmp_path / "letters").iterdir()] == ["dear.txt"]


KILLED = """
import sys, consumers.archive.write as write
from pathlib import Path
from typing import Any
from consumers.log.local import LocalLogReader
write.POLL_RECORDS, write.FILE_BYTES = 3, 2000
print("started", flush=True)
write.archive(LocalLogReader(Path(sys.argv[1]), topic_prefix="cua."), Path(sys.argv[2]))
"""


def test_a_killed_run_leaves_an_archive_that_the_next_run_completes(
    tmp_path: Path, log: Path
) -> None:
    folder = tmp_path / "archive"
    num_kills = 0
    for delay in (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08):
        command = [sys.executable, "-c", KILLED, str(log), str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(delay)
            num_kills += process.poll() is None
            process.kill()

    with opened(log) as reader:
        archive(reader, folder)
        whole = read_all(reader)
    assert num_kills > 0
    assert not list(folder.rglob("*.partial"))
    check_archive(folder)
    delete_until(log, 10_000)
    with opened(log) as reader:
        found = read_all(ArchivedLogReader(reader, folder))
    assert by_partition(found) == by_partition(whole)


@pytest.mark.services
def test_rebuild_and_verify_read_across_archive_and_log(
    tmp_path: Path, events: list[LoggedEvent], migrated_url: str
) -> None:
    installation = open_installation(os.environ)
    log = installation.local_log_path
    log.parent.mkdir(parents=True)
    write_local_log(log, events)
    with opened(log) as reader:
        ProjectionLoop(reader, migrated_url).run_once()
        archive(reader, tmp_path / "archive")
        before = verify(reader, migrated_url)
    delete_until(log, 60)

    with opened(log) as reader, pytest.raises(CuaProjectError, match="records were deleted"):
        rebuild(reader, migrated_url)
    with opened(log) as reader:
        both = ArchivedLogReader(reader, tmp_path / "archive")
        assert compare(both, migrated_url).equal
        rebuild(both, migrated_url)
        assert verify(both, migrated_url) == before
        ProjectionLoop(reader, migrated_url).run_once()


@pytest.mark.services
def test_what_retention_deleted_from_kafka_is_read_from_the_archive(
    tmp_path: Path, events: list[LoggedEvent], kafka: KafkaService
) -> None:
    prefix = f"archive{abs(hash(tmp_path))}."
    installation = installation_on(kafka.bootstrap_servers, tmp_path, prefix)
    topics = [prefix + name for name in TOPIC_NAMES]
    with contextlib.closing(KafkaLog(installation, topics)) as writer:
        writer.append(
            [
                Record(topic_of(event.subject, prefix), event.subject, event.value)
                for event in events
            ]
        )
    with contextlib.closing(open_reader(installation)) as reader:
        whole = read_all(reader, 2.0)
        ends = reader.end_offsets(reader.partitions())
        assert archive(reader, tmp_path / "archive").events == len(events)
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    admin.delete_records({KafkaPartition(*at): end // 2 for at, end in ends.items() if end > 1})
    admin.close()

    with contextlib.closing(open_reader(installation)) as reader:
        assert sum(reader.beginning_offsets(reader.partitions()).values()) > 0
        found = read_all(ArchivedLogReader(reader, tmp_path / "archive"), 2.0)

    assert len(whole) == len(events)
    assert by_partition(found) == by_partition(whole)


def test_the_command_reports_what_it_copied_and_checks_it(
    tmp_path: Path, events: list[LoggedEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("CUA_HOME", str(home))
    path = open_installation(os.environ).local_log_path
    path.parent.mkdir(parents=True)
    write_local_log(path, events)
    folder = str(tmp_path / "archive")

    first = CliRunner().invoke(cli, ["archive", folder, "--json"], catch_exceptions=False)
    again = CliRunner().invoke(cli, ["archive", folder, "--json"], catch_exceptions=False)
    checked = CliRunner().invoke(cli, ["archive", "--check", folder, "--json"])

    assert json.loads(first.stdout)["events"] == len(events)
    assert (json.loads(again.stdout)["events"], json.loads(again.stdout)["files"]) == (0, 0)
    assert json.loads(checked.stdout)["events"] == len(events)
    assert json.loads(checked.stdout)["positions"] == json.loads(first.stdout)["positions"]
