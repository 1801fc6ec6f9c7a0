"""File format of the local log: one SQLite database in WAL mode, written with synchronous=FULL.

With Kafka the same file is the spool. `producer.log.local` writes it, `consumers.log.local` reads
it; this module only has constants, DDL and pure functions.

A record has two coordinates. Topic, partition and offset are those of Kafka. Its position counts
over the whole file in the order of appending, which is the order of the b-tree; scans and the
shipper follow it. Both are assigned inside BEGIN IMMEDIATE, so they have no gaps and increase in
the order of commits: a reader at position n has seen all records before it. WAL with FULL syncs a
commit before any reader sees it, so whatever is read is durable.
"""

from datetime import datetime, timedelta

from schemas.ids import EPOCH_START
from schemas.local_index import INDEX_DDL

FORMAT = 1
"""Version of the format; raised by changes that older readers cannot read."""

DDL: tuple[str, ...] = (
    # log_id: identity of this file. format: FORMAT.
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # The next record's position, and the lower bound of its append time (microseconds since 1970).
    # Every record below indexed_to is in the index.
    """
    CREATE TABLE head (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        next_position INTEGER NOT NULL,
        appended_at INTEGER NOT NULL,
        indexed_to INTEGER NOT NULL
    )
    """,
    # next_offset survives pruning, so that an offset is never reused.
    """
    CREATE TABLE partitions (
        id INTEGER PRIMARY KEY,
        topic TEXT NOT NULL,
        partition INTEGER NOT NULL,
        next_offset INTEGER NOT NULL DEFAULT 0,
        UNIQUE (topic, partition)
    )
    """,
    # value is the last column: a scan that skips a row does not read its overflow pages.
    """
    CREATE TABLE records (
        position INTEGER PRIMARY KEY,
        partition_id INTEGER NOT NULL,
        "offset" INTEGER NOT NULL,
        appended_at INTEGER NOT NULL,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        UNIQUE (partition_id, "offset")
    )
    """,
    # Per log id (target), the next position to ship to that log.
    "CREATE TABLE cursors (target TEXT PRIMARY KEY, next_position INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO head VALUES (1, 1, 0, 1)",
    *INDEX_DDL,
)

HELD_DDL = """
    CREATE TABLE IF NOT EXISTS held (
        target TEXT NOT NULL,
        key TEXT NOT NULL,
        position INTEGER NOT NULL,
        PRIMARY KEY (target, key)
    ) WITHOUT ROWID
"""
"""Streams that `target` does not take further, because the record at `position` is too large for
it. Their records from there on are not shipped, wherever the cursor is. Made by the shipper."""

MICROSECOND = timedelta(microseconds=1)


def to_microseconds(time: datetime) -> int:
    """A UTC time as stored in the file."""
    return (time - EPOCH_START) // MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    """A stored time as UTC."""
    return EPOCH_START + timedelta(microseconds=microseconds)
