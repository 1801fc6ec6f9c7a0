"""Index of the local log: which blocks of a partition hold records of a stream, of a training.

A block is `BLOCK_OFFSETS` consecutive offsets of one partition. An entry is only ever added, and
is only a hint where to look: a reader filters the block's records. So an entry too many is
harmless, and adding one twice is the same as once.

The index covers every record below the position `head.indexed_to`. The local log's writers add
entries in the transaction of the records; what is appended as a spool, which keeps no index, lies
above that position until such a writer has caught up, and readers scan it.
"""

import json
import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple
from uuid import UUID

from schemas.wire import UnreadableError, read_envelope

BLOCK_OFFSETS = 128
"""Larger blocks: fewer entries, more foreign records to skip. A rollout of 12 to 50 events beside a
dozen others has one to four entries of 60 bytes."""

INDEX_DDL: tuple[str, ...] = (
    """
    CREATE TABLE stream_blocks (
        key TEXT NOT NULL,
        partition_id INTEGER NOT NULL,
        block INTEGER NOT NULL,
        PRIMARY KEY (key, partition_id, block)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE training_blocks (
        training TEXT NOT NULL,
        partition_id INTEGER NOT NULL,
        block INTEGER NOT NULL,
        PRIMARY KEY (training, partition_id, block)
    ) WITHOUT ROWID
    """,
)

BOUNDS = "SELECT indexed_to, next_position FROM head"

# The beginning of an event as `schemas.wire.encode` writes it. Anchored: what follows is payload.
_HEAD = re.compile(
    rb'\{"specversion":"1\.0","id":"[^"\\]*","source":"[^"\\]*","type":"[^"\\]*","time":"[^"\\]*",'
    rb'"subject":"([^"\\]*)","datacontenttype":"application/json","dataschema":"[^"\\]*",'
    rb'(?:"trainingid":"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",)?'
    rb'(?:"continues":"[0-9/]*",)?"epoch":'
)


Entry = tuple[str, int, int]
"""(stream or training, partition's id, block)."""


class Entries(NamedTuple):
    """What the index holds about one record."""

    streams: tuple[Entry, ...]
    trainings: tuple[Entry, ...]


def entries_of(partition_id: int, offset: int, key: str, value: bytes) -> Entries:
    """A record's entries: under its key, and under the stream and the training its event names."""
    found = _HEAD.match(value)
    if found is not None:
        # Garbled bytes name no stream that anybody looks for.
        subject, training = (
            None if part is None else part.decode(errors="replace") for part in found.groups()
        )
    else:
        subject, training = _read_names(value)
    block = offset // BLOCK_OFFSETS
    names = [key] if subject in {None, key} else [key, str(subject)]
    streams = tuple((name, partition_id, block) for name in names)
    return Entries(streams, () if training is None else ((training, partition_id, block),))


def _read_names(value: bytes) -> tuple[str | None, str | None]:
    try:
        envelope = read_envelope(value)
    except UnreadableError:
        return None, None
    training_id = envelope.training_id
    return envelope.subject, None if training_id is None else str(training_id)


class Places(NamedTuple):
    """Entries to look for: of streams, or of a training."""

    query: str
    parameter: str


def places_of_streams(keys: Collection[str]) -> Places:
    """Where records with any of these keys, or of any of these streams, may be."""
    query = """SELECT DISTINCT partition_id, block FROM stream_blocks
               WHERE key IN (SELECT value FROM json_each(?)) ORDER BY partition_id, block"""
    return Places(query, json.dumps(sorted(keys)))


def places_of_training(training_id: UUID) -> Places:
    """Where events that name this training may be."""
    query = """SELECT partition_id, block FROM training_blocks
               WHERE training = ? ORDER BY partition_id, block"""
    return Places(query, str(training_id))


def places_of_trainings(training_ids: Collection[UUID]) -> Places:
    """Where events that name any of these trainings, or records of their own streams, may be."""
    query = """WITH wanted AS (SELECT value AS training FROM json_each(?))
               SELECT partition_id, block FROM training_blocks
               WHERE training IN (SELECT training FROM wanted)
               UNION SELECT partition_id, block FROM stream_blocks
               WHERE key IN (SELECT 'training/' || training FROM wanted)
               ORDER BY partition_id, block"""
    return Places(query, json.dumps(sorted(map(str, training_ids))))


def places_of_beginnings(kind: str) -> Places:
    """Where the first record of every stream of this kind is, in each partition it lies in."""
    query = """WITH wanted AS (SELECT ? AS kind)
               SELECT DISTINCT partition_id, min(block) AS block FROM stream_blocks, wanted
               WHERE key > kind || '/' AND key < kind || '0'
               GROUP BY key, partition_id ORDER BY partition_id, block"""
    return Places(query, kind)


def spans(
    connection: sqlite3.Connection, partitions: Mapping[int, range], places: Places
) -> Iterator[tuple[int, range]]:
    """Where to look within these offsets of each partition: (partition's id, offsets), in order.

    What is not indexed is to be looked through whole.
    """
    # The bound before the entries: what it covers, they have.
    indexed_to, next_position = connection.execute(BOUNDS).fetchone()
    blocks: dict[int, list[int]] = {}
    for partition_id, block in connection.execute(places.query, (places.parameter,)).fetchall():
        blocks.setdefault(partition_id, []).append(block)
    for partition_id, offsets in partitions.items():
        indexed = offsets
        if indexed_to < next_position:
            end = _first_offset_from(connection, partition_id, offsets, indexed_to)
            indexed = range(offsets.start, end)
        for block in blocks.get(partition_id, []):
            low = max(indexed.start, block * BLOCK_OFFSETS)
            high = min(indexed.stop, (block + 1) * BLOCK_OFFSETS)
            if low < high:
                yield partition_id, range(low, high)
        if indexed.stop < offsets.stop:
            yield partition_id, range(indexed.stop, offsets.stop)


def _first_offset_from(
    connection: sqlite3.Connection, partition_id: int, offsets: range, position: int
) -> int:
    """The first of these offsets whose record is at this position or later."""
    low, high = offsets.start, offsets.stop
    # Positions grow with the offsets of a partition, so halving finds it. A missing one was pruned.
    while low < high:
        middle = (low + high) // 2
        found = connection.execute(
            'SELECT position FROM records WHERE partition_id = ? AND "offset" = ?',
            (partition_id, middle),
        ).fetchone()
        if found is None or found[0] < position:
            low = middle + 1
        else:
            high = middle
    return low
