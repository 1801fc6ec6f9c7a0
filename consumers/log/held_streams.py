"""Streams that stay in this machine's spool: their next record is larger than the topic takes.

The shipper holds them (`schemas.local_log.HELD_DDL`) and sends them once the topic takes it. From
that record on nothing of them is in Kafka or in the tables, so no other host can know it.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from consumers.errors import UnreachableError
from schemas.local_log import from_microseconds
from schemas.readable_log import UnreadableLogError, read_log_file

BUSY_TIMEOUT_S = 30.0


class HeldStream(NamedTuple):
    """A stream that Kafka does not take further."""

    stream: str
    topic: str
    num_records: int
    """Records that are not sent, from the one that is too large on."""
    size_bytes: int
    """Of the one that is too large, its value."""
    since: datetime
    """When that was appended."""


@contextmanager
def open_spool(path: Path) -> Iterator[sqlite3.Connection]:
    """The file of the spool. UnreachableError."""
    try:
        uri = f"{path.absolute().as_uri()}?mode=rw"
        with closing(
            sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        ) as connection:
            yield connection
    except sqlite3.Error as error:
        message = f"the spool {path} cannot be used: {error}"
        raise UnreachableError(message) from error


def not_held(connection: sqlite3.Connection) -> str:
    """A condition, beginning with AND, that leaves out records of streams that are held."""
    if not _has_held(connection):
        return ""
    return (
        " AND NOT EXISTS (SELECT 1 FROM held WHERE held.key = records.key AND held.position <="
        " records.position)"
    )


def read_held(path: Path, target: str) -> list[HeldStream]:
    """The streams that the log with this id does not take further; by name. UnreachableError."""
    if not path.exists():
        return []

    def query(connection: sqlite3.Connection) -> list[tuple[str, str, int, int, int]]:
        if not _has_held(connection):
            return []
        return connection.execute(
            "SELECT held.key, topic, (SELECT count(*) FROM records AS later WHERE later.key ="
            " held.key AND later.position >= held.position), length(value), appended_at FROM held"
            " JOIN records ON records.position = held.position JOIN partitions ON partitions.id ="
            " partition_id WHERE target = ? ORDER BY held.key",
            (target,),
        ).fetchall()

    try:
        rows = read_log_file(path, BUSY_TIMEOUT_S, query)
    except (sqlite3.Error, UnreadableLogError, OSError) as error:
        message = f"the spool {path} cannot be read: {error}"
        raise UnreachableError(message) from error
    return [
        HeldStream(stream, topic, num_records, size_bytes, from_microseconds(appended_at))
        for stream, topic, num_records, size_bytes, appended_at in rows
    ]


def num_held(connection: sqlite3.Connection, target: str) -> int:
    """Records of held streams that the shipper has passed over."""
    if not _has_held(connection):
        return 0
    found = connection.execute(
        "SELECT count(*) FROM held JOIN records ON records.key = held.key AND records.position >="
        " held.position WHERE target = :target AND records.position < (SELECT"
        " coalesce(max(next_position), 1) FROM cursors WHERE target = :target)",
        {"target": target},
    )
    return int(found.fetchone()[0])


def _has_held(connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'held'")
    return bool(found.fetchone()[0])
