"""The local log's file is exchanged while it is read: nothing more of it is taken."""

import gc
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from consumers.errors import CuaProjectError
from consumers.log.local import LocalLogReader
from consumers.log.reader import TopicPartition
from schemas.home import home_partition
from tests.support.paths import ROOT

REPLACED = "removed or replaced while it was being read; start the command again"
AT = TopicPartition("cua.training", home_partition("training/1", 12))
WRITE = """
import sys; from pathlib import Path
from producer.log.local import LocalLog; from producer.log.writer import Record
log = LocalLog(Path(sys.argv[1]))
log.append([Record("cua.training", "training/1", value.encode()) for value in sys.argv[2:]])
log.close()
"""
READ = """
import sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute('SELECT value FROM records ORDER BY "offset"')
print(",".join(value.decode() for (value,) in rows))
"""


def write(path: Path, *values: str) -> None:
    """By another process: SQLite shares what a process knows of a file between its connections."""
    subprocess.run([sys.executable, "-c", WRITE, str(path), *values], check=True, cwd=ROOT)


def values(reader: LocalLogReader) -> list[bytes]:
    return [record.value for record in reader.poll(100, 0.05)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log.sqlite3"
    write(path, "1", "2")
    shutil.copy(path, tmp_path / "older")
    return path


def open_at_end(path: Path) -> LocalLogReader:
    reader = LocalLogReader(path, topic_prefix="cua.")
    reader.seek({AT: 0})
    assert values(reader) == [b"1", b"2"]
    return reader


def test_what_a_removed_file_still_gets_is_not_read(path: Path) -> None:
    """Whoever has it open may write into it for ever."""
    with closing(open_at_end(path)) as reader:
        write(path, "3")
        path.with_name("older").replace(path)
        with pytest.raises(CuaProjectError, match=REPLACED):
            reader.poll(100, 10)


def test_a_file_that_is_written_over_keeps_what_it_gets_from_then_on(path: Path) -> None:
    """Who restores a copy in place removes SQLite's two files beside it, which were of the other.

    A reader that closes would write its own WAL into the copy.
    """
    reader = open_at_end(path)
    write(path, "3", "4")
    assert values(reader) == [b"3", b"4"]
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink()
    # Not by this process: it would lose its locks on the file.
    subprocess.run(["cp", path.with_name("older"), path], check=True)
    write(path, "other")

    with pytest.raises(CuaProjectError, match=REPLACED):
        reader.poll(100, 0.05)
    reader.close()
    del reader
    gc.collect()

    assert subprocess.check_output([sys.executable, "-c", READ, str(path)]) == b"1,2,other\n"
