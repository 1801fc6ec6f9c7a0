"""Trying a stream again reads its own records, however many other streams have some."""

from collections.abc import Iterator
from uuid import NAMESPACE_URL, uuid5

import pytest

from consumers.database.connection import Connection, Cursor, connected
from consumers.projection.operators import Operator
from schemas.catalogue import NUM_PARTITIONS
from schemas.home import home_partition

pytestmark = pytest.mark.services

NUM_OTHERS = 20_000
NUM_TRIED = 1_000
STREAM = f"rollout/{uuid5(NAMESPACE_URL, 'tried')}"
TABLES = ("unapplied_record", "stream_position")
FILL = """
    INSERT INTO cua.stream_position (stream, epoch, sequence, source, ends, refused, statuses,
        parked_since, dropped, num_waiting, drops) SELECT stream, 0, 0, '', '{}', '[]', '{}',
        now(), false, 0, '{}' FROM unnest(%(streams)s) AS one (stream);
    INSERT INTO cua.unapplied_record (log_id, topic, partition, log_offset, state, kind, reason,
        stream, key, value, appended_at) SELECT 'log', 'cua.rollouts', home, number, 'parked',
        'unreadable', '', stream, stream, '{', now() FROM unnest(%(streams)s, %(homes)s) WITH
        ORDINALITY AS one (stream, home, number)
"""
READ = (
    "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables WHERE"
    " schemaname = 'cua' AND relname = ANY(%s)"
)


class CountingCursor(Cursor):  # type: ignore[misc]  # psycopg2's stubs
    """Counts the rows that all of them hand out."""

    num_rows = 0

    def fetchall(self) -> list[tuple[object, ...]]:
        rows: list[tuple[object, ...]] = super().fetchall()
        type(self).num_rows += len(rows)
        return rows


@pytest.fixture
def connection(migrated_url: str) -> Iterator[Connection]:
    others = [f"rollout/{uuid5(NAMESPACE_URL, str(number))}" for number in range(NUM_OTHERS)]
    streams = [STREAM, *others]
    homes = [home_partition(stream, NUM_PARTITIONS) for stream in streams]
    with connected(migrated_url, "test") as opened:
        with opened, opened.cursor() as cursor:
            cursor.execute(FILL, {"streams": streams, "homes": homes})
        opened.autocommit = True
        with opened.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        opened.autocommit = False
        opened.cursor_factory = CountingCursor
        CountingCursor.num_rows = 0
        yield opened


def num_rows_read(connection: Connection) -> int:
    """By the server, of the two tables, since the beginning."""
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
    with connection, connection.cursor() as cursor:
        cursor.execute(READ, (list(TABLES),))
        row = cursor.fetchone()
    assert row is not None
    return int(row[0])


def test_one_stream_is_tried_without_reading_what_the_others_hold(connection: Connection) -> None:
    before = num_rows_read(connection)
    assert Operator(connection, "cua").retry([STREAM]) == (1, 0, 1)
    # The planner may join what has changed with one scan of each of the two tables; at this size
    # that is cheaper than its guess of a hundred look-ups. Four scans come of counting everything.
    assert num_rows_read(connection) - before < 2.5 * NUM_OTHERS
    assert CountingCursor.num_rows < 20


def test_a_batch_fetches_the_records_of_its_own_streams(connection: Connection) -> None:
    with connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT stream FROM cua.stream_position ORDER BY stream LIMIT %s", (NUM_TRIED,)
        )
        streams = [stream for (stream,) in cursor.fetchall()]
    CountingCursor.num_rows = 0
    operator = Operator(connection, "cua", batch_records=100)
    assert operator.retry(streams) == (NUM_TRIED, 0, NUM_TRIED)
    # Counts, records and states.
    assert CountingCursor.num_rows < 10 * NUM_TRIED
