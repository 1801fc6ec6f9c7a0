"""An event is acknowledged after its commit, never before: the window is held open, not hoped for.

Another writer holds the local log's write lock, so that no commit can succeed; whoever acknowledges
first is then caught every time, and kill -9 falls between acknowledgement and commit.
"""

import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from queue import Empty, Queue

import pytest

from producer.emit import Emitter
from schemas.installation import Installation
from schemas.wire import read_envelope
from tests.support.emitting import CREATING, REQUESTED, emitting_process, new_subject
from tests.support.reading import installation_at, read_all

QUIET_S = 1.5
"""An emitter that needs no commit says something a hundred times in this time."""


@contextmanager
def held_write_lock(installation: Installation) -> Iterator[None]:
    path = installation.local_log_path
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield
        holder.execute("ROLLBACK")


def recorded(installation: Installation) -> set[tuple[str, int]]:
    envelopes = [read_envelope(record.value) for record in read_all(installation)]
    return {(envelope.subject, envelope.sequence) for envelope in envelopes}


def test_a_process_killed_while_no_commit_can_succeed_has_acknowledged_only_what_is_recorded(
    tmp_path: Path,
) -> None:
    process = emitting_process(tmp_path, 3)
    lines: Queue[str] = Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)

    reading = threading.Thread(target=read)
    reading.start()
    said = [lines.get(timeout=60)]
    home = installation_at(tmp_path)
    try:
        with held_write_lock(home):
            try:
                while True:
                    said.append(lines.get(timeout=QUIET_S))
                    assert len(said) < 100_000, "it goes on acknowledging"
            except Empty:
                pass
            process.send_signal(signal.SIGKILL)
            process.wait(30)
    finally:
        process.kill()
        process.wait(30)
        reading.join(30)
        assert process.stdout is not None
        process.stdout.close()
    while not lines.empty():
        said.append(lines.get())
    whole = [line.split() for line in said if line.endswith("\n")]
    acknowledged = {(subject, int(number)) for subject, number, _ in whole}
    assert acknowledged <= recorded(home)


def test_neither_wait_nor_flush_nor_done_says_yes_while_no_commit_can_succeed(
    tmp_path: Path,
) -> None:
    home = installation_at(tmp_path)
    with Emitter.open(home) as emitter:
        stream = emitter.stream(new_subject())
        stream.emit(REQUESTED).wait(30)
        with held_write_lock(home):
            acknowledgement = stream.emit(CREATING)
            with pytest.raises(TimeoutError):
                acknowledgement.wait(0.5)
            with pytest.raises(TimeoutError):
                emitter.flush(0.2)
            assert not acknowledgement.done
        acknowledgement.wait(30)
        assert acknowledgement.done


def test_what_is_acknowledged_is_seen_by_every_other_reader_at_once(tmp_path: Path) -> None:
    home = installation_at(tmp_path)
    with Emitter.open(home) as emitter:
        emitter.stream(new_subject()).emit(REQUESTED).wait(30)
        with closing(sqlite3.connect(home.local_log_path, isolation_level=None)) as other:
            for expected in range(2, 40):
                another = emitter.stream(new_subject())
                another.emit(REQUESTED).wait(30)
                (count,) = other.execute("SELECT count(*) FROM records").fetchone()
                assert count == expected
