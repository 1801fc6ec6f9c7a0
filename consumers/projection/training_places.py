"""How far the tables have read the log, and where in it the records of one training are.

For readers of a training in Kafka, which has no index: they read these offsets, and all that
the tables have not read. What the tables cannot prove to be whole is not answered.
"""

from typing import NamedTuple
from uuid import UUID

from consumers.database.connection import Cursor, connected
from consumers.errors import MismatchError
from consumers.fold.training_blocks import ANY, BLOCK_OFFSETS

SCHEMA = "cua"
"""`consumers.tables.SCHEMA`, without importing SQLAlchemy: a trainer waits for the answer."""
SETTINGS = {
    "statement_timeout": "10s",
    "lock_timeout": "5s",
    "enable_seqscan": "off",
    "jit": "off",
}
"""Whoever asks reads the log instead rather than wait longer. The two queries below are by index,
also where the table was never analyzed, and too short to be compiled."""
FOUND = (
    'SELECT topic, partition, block FROM "{schema}".training_block WHERE trainings ?| %s'
    " ORDER BY topic, partition, block"
)
COUNTED = (
    "SELECT topic, partition, coalesce(indexed_from, next_offset), next_offset, (SELECT count(*)"
    ' FROM "{schema}".training_block AS one WHERE one.topic = read.topic AND one.partition ='
    ' read.partition) FROM "{schema}".reader_position AS read ORDER BY topic, partition'
)
"""Counts the blocks by their primary key alone: with one missing the index is not whole."""


class Offsets(NamedTuple):
    """From `start` to before `stop`."""

    start: int
    stop: int


class PartitionPlaces(NamedTuple):
    """One partition."""

    topic: str
    partition: int
    indexed: Offsets
    """The offsets whose trainings the tables have; those of all others are unknown."""
    found: list[Offsets]
    """Where records that name the training may be, within `indexed`; in order."""


class TrainingPlaces(NamedTuple):
    """What the tables know of a training's places in one log."""

    log_id: str | None
    """None: nothing was ever read."""
    epoch: int
    """Of the training's stream in the tables; 0: they have none of it."""
    sequence: int
    partitions: list[PartitionPlaces]
    """Every partition that was read, sorted."""


def read_training_places(
    url: str, training_id: UUID | None, schema: str = SCHEMA
) -> TrainingPlaces:
    """One snapshot's answer; without a training nothing is found.

    UnreachableError; MismatchError when the stream's position and the index contradict each other;
    psycopg2's errors for tables of another revision.
    """
    with connected(url, "positions", SETTINGS) as connection:
        connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
        with connection.cursor() as cursor:
            return _read(cursor, schema, training_id)


def _read(cursor: Cursor, schema: str, training_id: UUID | None) -> TrainingPlaces:
    cursor.execute(f'SELECT log_id FROM "{schema}".projection')
    row = cursor.fetchone()
    log_id = None if row is None else row[0]
    blocks: dict[tuple[str, int], list[int]] = {}
    if training_id is not None:
        cursor.execute(FOUND.format(schema=schema), ([str(training_id), ANY],))
        for topic, partition, block in cursor.fetchall():
            blocks.setdefault((topic, partition), []).append(block)
    cursor.execute(COUNTED.format(schema=schema))
    partitions = [
        _partition(topic, partition, Offsets(begin, end), blocks.get((topic, partition), []), count)
        for topic, partition, begin, end, count in cursor.fetchall()
    ]
    if training_id is None:
        return TrainingPlaces(log_id, 0, 0, partitions)
    cursor.execute(
        f'SELECT epoch, sequence, EXISTS (SELECT FROM "{schema}".training WHERE id = %s) FROM'
        f' (SELECT) AS one LEFT JOIN "{schema}".stream_position ON stream = %s',
        (str(training_id), f"training/{training_id}"),
    )
    epoch, sequence, has_row = cursor.fetchone() or (None, None, False)
    # After an adoption the index follows the new log, while rows are there already.
    is_whole = bool(partitions) and all(partition.indexed.start == 0 for partition in partitions)
    if is_whole and not blocks and (has_row or epoch is not None):
        message = (
            f"the index names no block for training {training_id}, of which the tables have"
            " rows: it is damaged (`cua-project rebuild`), or they are read from a new log"
        )
        raise MismatchError(message)
    return TrainingPlaces(log_id, epoch or 0, sequence or 0, partitions)


def _partition(
    topic: str, partition: int, indexed: Offsets, blocks: list[int], num_blocks: int
) -> PartitionPlaces:
    begin, end = indexed
    expected = (end - 1) // BLOCK_OFFSETS - begin // BLOCK_OFFSETS + 1 if begin < end else 0
    if num_blocks != expected:
        message = (
            f"the index of {topic}/{partition} is not whole: cua.training_block has {num_blocks}"
            f" blocks of the offsets {begin} to {end}, not {expected}; run `cua-project rebuild`"
        )
        raise MismatchError(message)
    found: list[Offsets] = []
    for block in blocks:
        start = max(begin, block * BLOCK_OFFSETS)
        stop = min(end, (block + 1) * BLOCK_OFFSETS)
        if found and found[-1].stop == start:
            found[-1] = Offsets(found[-1].start, stop)
        elif start < stop:
            found.append(Offsets(start, stop))
    return PartitionPlaces(topic, partition, indexed, found)
