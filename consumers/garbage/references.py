"""Which blobs events name: every record of the log and of this machine's spool, read as bytes.

Bytes, so that an event of any version, parked or unreadable, protects what it names.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from consumers.errors import CuaProjectError, UnreachableError
from consumers.log.reader import LogReader, TopicPartition
from consumers.log.until import read_until
from schemas.installation import Installation

REF = re.compile(rb"blob:sha256:([0-9a-f]{64})")
BATCH = 2000
BUSY_TIMEOUT_S = 30.0

Named = Callable[[bytes], None]
"""Called with each blob's sha256 (32 bytes) that something names."""


def read_log(
    reader: LogReader, since: Mapping[TopicPartition, int] | None, named: Named
) -> dict[TopicPartition, int]:
    """Report every blob that the log's records name; returns the offsets after the last record.

    `since` None: from the beginning. CuaProjectError when that was deleted: an archived event still
    names its blob. UnreachableError.
    """
    partitions = reader.partitions()
    beginnings, ends = reader.beginning_offsets(partitions), reader.end_offsets(partitions)
    if pruned := [at for at in partitions if beginnings[at] and since is None]:
        message = (
            f"the log has lost its beginning ({pruned[0].topic}/{pruned[0].partition} starts at"
            f" offset {beginnings[pruned[0]]}), so it does not say which blobs older events name;"
            " give its --archive, or delete only shipped records with --only spool"
        )
        raise CuaProjectError(message)
    starts = {at: (since or {}).get(at, 0) for at in partitions}
    for records in read_until(reader, starts, ends, BATCH):
        for record in records:
            _tell(record.value, named)
    return ends


def read_file(path: Path, since: int, named: Named) -> int:
    """Tell every blob that the local log's file names, whatever the topic; the next position.

    A file that does not exist names nothing.
    """
    if not path.exists():
        return since
    try:
        with closing(_connect(path)) as connection:
            while True:
                rows = connection.execute(
                    "SELECT position, value FROM records WHERE position >= ? ORDER BY position"
                    " LIMIT ?",
                    (since, BATCH),
                ).fetchall()
                if not rows:
                    return since
                for _, value in rows:
                    _tell(value, named)
                since = rows[-1][0] + 1
    except sqlite3.Error as error:
        message = f"the local log {path} cannot be read: {error}; nothing was deleted"
        raise UnreachableError(message) from error


def read_runs(installation: Installation, named: Named) -> None:
    """Tell every blob that resume states name: they carry events that the log may not have yet."""
    for folder in (installation.runs_dir, installation.open_dir):
        for path in _json_files(folder):
            try:
                _tell(path.read_bytes(), named)
            except FileNotFoundError:
                continue  # replaced by a newer state, which was emitted from


def other_targets(path: Path, log_id: str) -> list[str]:
    """Other logs that this machine's events were shipped to, if some are no longer in the file."""
    if not path.exists():
        return []
    with closing(_connect(path)) as connection:
        first = connection.execute("SELECT min(position) FROM records").fetchone()[0]
        head = connection.execute("SELECT next_position FROM head").fetchone()[0]
        if (first or head) == 1:
            return []
        rows = connection.execute(
            "SELECT target FROM cursors WHERE target <> ? AND target NOT LIKE 'blobs-%' AND"
            " next_position > 1",
            (log_id,),
        )
        return [target for (target,) in rows]


def _tell(value: bytes, named: Named) -> None:
    if b"blob:sha256:" in value:
        for digest in REF.findall(value):
            named(bytes.fromhex(digest.decode()))


def _json_files(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in folder.rglob("*.json") if path.is_file())


def _connect(path: Path) -> sqlite3.Connection:
    # rw never creates the file; ro could not read a WAL without its shared memory.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=BUSY_TIMEOUT_S
    )
    connection.execute("PRAGMA query_only = ON")
    return connection
