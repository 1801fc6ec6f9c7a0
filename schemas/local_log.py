"""How the local log lies on disk: one SQLite file in WAL mode, written with synchronous=FULL.

The same file is the spool before Kafka.

Constants, DDL and pure functions; nothing here opens anything. `producer.log.local` writes the
file, `consumers.log.local` reads it.

Every record has two coordinates. Its place and offset are what the rest of the system knows (the
same as Kafka's). Its position, counted over the whole file, is the order of appending: what a scan
and the shipper follow, because that is the order of the b-tree. Both are given inside BEGIN
IMMEDIATE, so they are without gaps and rise with the order of commits: whoever has read position n
has seen all before it. WAL with FULL syncs a commit before any reader sees it, so what is read is
durable.
"""

import zlib
from datetime import datetime, timedelta

from schemas.ids import EPOCH_START

FORMAT = 1
"""Of the file; raised when an older reader could not read it."""

DDL: tuple[str, ...] = (
    # log_id: this file's identity. format: FORMAT.
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # What the next append gets; appended_at (of the last append, in microseconds since 1970) is
    # what the next may not fall below.
    """CREATE TABLE head (only INTEGER PRIMARY KEY CHECK (only = 1), next_position INTEGER NOT NULL,
       appended_at INTEGER NOT NULL)""",
    # next_offset outlives the records, so that pruning a spool never gives an offset twice.
    """CREATE TABLE partitions (id INTEGER PRIMARY KEY, topic TEXT NOT NULL, partition INTEGER NOT NULL,
       next_offset INTEGER NOT NULL DEFAULT 0, UNIQUE (topic, partition))""",
    # value last: a scan that skips a row does not touch its overflow pages.
    """CREATE TABLE records (position INTEGER PRIMARY KEY, partition_id INTEGER NOT NULL, "offset" INTEGER NOT NULL,
       appended_at INTEGER NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, UNIQUE (partition_id, "offset"))""",
    # How far this file was shipped to another log: the next position to ship, by that log's id.
    "CREATE TABLE cursors (target TEXT PRIMARY KEY, next_position INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO head VALUES (1, 1, 0)",
)

MICROSECOND = timedelta(microseconds=1)


def partition_of(key: str, num_partitions: int) -> int:
    """The partition of a stream: CRC-32 of its UTF-8 key, modulo (librdkafka's `consistent` partitioner). The same on every log."""
    return zlib.crc32(key.encode()) % num_partitions


def to_microseconds(time: datetime) -> int:
    """A UTC time as the file keeps it."""
    return (time - EPOCH_START) // MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    """A time of the file as UTC."""
    return EPOCH_START + timedelta(microseconds=microseconds)
