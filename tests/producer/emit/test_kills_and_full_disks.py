import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from consumers.blobs import read_blob
from consumers.errors import NotFoundError
from producer.emit import Emitter
from producer.errors import LogBrokenError
from producer.log.local import LocalLog
from producer.log.local_file import open_for_writing, reading
from producer.log.writer import Record
from schemas.catalogue import NUM_PARTITIONS
from schemas.environment import EnvironmentRequested
from schemas.home import home_partition
from schemas.wire import read_envelope
from tests.support.emitting import REQUESTED, acknowledged, emitting_process, new_subject
from tests.support.paths import ROOT
from tests.support.reading import installation_at, read_all


def sequences(home: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for record in read_all(installation_at(home)):
        envelope = read_envelope(record.value)
        found[envelope.subject].append(envelope.sequence)
    return found


def check_recorded(home: Path, last: dict[str, int], num_streams: int) -> None:
    """Everything that was acknowledged, and no gap in a stream."""
    found = sequences(home)
    assert len(found) == num_streams
    for subject, numbers in found.items():
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= last.get(subject, 0)


@pytest.mark.parametrize("seed", range(3))
def test_kill_9_loses_no_acknowledged_event_or_blob_and_leaves_no_gap_in_a_stream(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    processes = [emitting_process(tmp_path, 4), emitting_process(tmp_path, 3)]
    lines: list[str] = []
    try:
        for process in processes:
            assert process.stdout is not None
            lines.append(process.stdout.readline())
        time.sleep(chance.uniform(0.05, 0.6))
    finally:
        for process in processes:
            process.send_signal(signal.SIGKILL)
        for process in processes:
            said, _ = process.communicate(timeout=30)
            lines += said.splitlines(keepends=True)
    last = acknowledged(lines)
    assert sum(last.values()) > 0
    check_recorded(tmp_path, last, 7)
    for line in lines:
        if "blob:" in line and line.endswith("\n"):
            read_blob(installation_at(tmp_path), line.split()[-1])


def test_processes_that_append_at_once_share_the_offsets_without_gap_or_loss(
    tmp_path: Path,
) -> None:
    code = (
        "import sys; from pathlib import Path; from producer.log.local import LocalLog; from"
        " producer.log.writer import Record\nlog = LocalLog(Path(sys.argv[1]))\nfor number in"
        " range(80): log.append([Record('cua.rollouts', 'rollout/same', f'{sys.argv[2]}"
        " {number}'.encode())])\nlog.close()"
    )
    path = tmp_path / "log" / "log.sqlite3"
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(path), name], cwd=ROOT)
        for name in ("a", "b", "c")
    ]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    records = read_all(installation_at(tmp_path))
    assert [record.offset for record in records] == list(range(240))
    for name in (b"a", b"b", b"c"):
        assert [r.value for r in records if r.value.startswith(name)] == [
            name + b" %d" % number for number in range(80)
        ]


def test_the_partitions_of_a_topic_are_seen_all_together_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite3"
    log = LocalLog(path)
    seen: set[int] = set()
    with reading(path) as other:

        def look(_: str) -> None:
            seen.add(other.execute("SELECT count(*) FROM partitions").fetchone()[0])

        log._connection.set_trace_callback(look)
        log.append([Record("cua.rollouts", "rollout/one", b"")])
        log._connection.set_trace_callback(None)
    log.close()
    assert seen == {0, NUM_PARTITIONS}


def test_an_append_makes_the_partitions_that_a_killed_process_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite3"
    with closing(open_for_writing(path)) as killed:
        killed.execute("INSERT INTO partitions (topic, partition) VALUES ('cua.rollouts', 0)")
    log = LocalLog(path)
    keys = [f"rollout/{number}" for number in range(50)]
    placed = log.append([Record("cua.rollouts", key, b"") for key in keys])
    log.close()
    assert [at.partition for at in placed] == [home_partition(key, NUM_PARTITIONS) for key in keys]
    assert {at.partition for at in placed} == set(range(NUM_PARTITIONS))


def test_a_file_that_a_kill_left_without_tables_is_made_whole_by_the_next_writer(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.sqlite3"
    with closing(sqlite3.connect(path)) as killed:
        killed.execute("PRAGMA journal_mode = WAL")
    assert path.stat().st_size > 0
    log = LocalLog(path)
    assert log.append([Record("cua.rollouts", "rollout/one", b"")])[0].offset == 0
    log.close()


def test_somebody_elses_database_in_the_logs_place_gets_no_tables_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite3"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE letters (text TEXT)")
    with pytest.raises(LogBrokenError, match="no such table: meta"):
        LocalLog(path)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("letters",)]


@pytest.mark.parametrize("first_page", [0, 1])
def test_a_file_of_which_a_disk_has_made_garbage_is_a_broken_log_and_is_not_made_anew(
    tmp_path: Path, first_page: int
) -> None:
    path = tmp_path / "log.sqlite3"
    LocalLog(path, topics=["cua.rollouts"]).close()
    content = path.read_bytes()
    path.write_bytes(content[: 4096 * first_page] + b"\xa5" * (len(content) - 4096 * first_page))
    spoilt = path.read_bytes()
    with pytest.raises(LogBrokenError, match="cannot be opened"):
        LocalLog(path)
    assert path.read_bytes() == spoilt


def fill_by_page_count(log: LocalLog) -> None:
    """SQLite then answers as for a full disk; the limit is the connection's own."""
    log._connection.execute("PRAGMA max_page_count = 40")


def test_a_full_log_breaks_for_good_and_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    installation = installation_at(tmp_path)
    emitter = Emitter.open(installation)
    subject, other = new_subject(), new_subject()
    big = EnvironmentRequested(env_type="a", box_type="b", config={"big": "x" * 500_000})
    emitter.stream(subject).emit(REQUESTED).wait(10)
    fill_by_page_count(emitter.log.local)
    acknowledgement = emitter.stream(other).emit(big)
    with pytest.raises(LogBrokenError, match=r"full.*Make room"):
        acknowledgement.wait(10)
    assert not acknowledgement.done
    with pytest.raises(LogBrokenError):
        emitter.stream(new_subject()).emit(big)
    with pytest.raises(LogBrokenError):
        emitter.put_blob(b"too late")
    with pytest.raises(LogBrokenError):
        emitter.close()
    assert [read_envelope(record.value).subject for record in read_all(installation)] == [subject]


def limited(size_bytes: int) -> Callable[[], None]:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, size_bytes))

    return limit


def test_a_process_whose_files_may_grow_no_more_ends_with_the_error_and_loses_nothing_acknowledged(
    tmp_path: Path,
) -> None:
    process = emitting_process(tmp_path, 5, stderr=subprocess.PIPE, preexec_fn=limited(400_000))
    said, error = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "LogBrokenError" in error
    last = acknowledged(said.splitlines(keepends=True))
    assert len(last) == 5
    check_recorded(tmp_path, last, 5)


def test_a_log_that_is_removed_under_its_writer_is_broken_and_not_silently_lost(
    tmp_path: Path,
) -> None:
    log = LocalLog(tmp_path / "log.sqlite3")
    log.append([Record("cua.rollouts", "rollout/a", b"1")])
    (tmp_path / "log.sqlite3").rename(tmp_path / "away.sqlite3")
    with pytest.raises(LogBrokenError):
        log.append([Record("cua.rollouts", "rollout/a", b"2")])
    log.close()


def test_a_file_of_a_later_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite3"
    connection = open_for_writing(path)
    connection.execute("UPDATE meta SET value = '99' WHERE name = 'format'")
    connection.close()
    with pytest.raises(LogBrokenError, match="format 99"):
        LocalLog(path)


def test_a_blob_that_nobody_stored_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="CUA_BLOBS"):
        read_blob(installation_at(tmp_path), "blob:sha256:" + "0" * 64)
