"""Counts of what is not in the rows: parked, waiting and refused records, abandoned streams."""

from typing import NamedTuple

from consumers.database.connection import Cursor
from consumers.tables import SCHEMA


class HeldCounts(NamedTuple):
    """Counts over all streams."""

    parked: int
    """Records."""
    duplicates: int
    fenced: int
    gaps: int
    """Streams that wait for a missing record."""
    abandoned: int
    """Streams whose rest an operator dropped."""
    foreign: int
    """Records that are not in their stream's home, so in no stream."""


def count_held(cursor: Cursor) -> HeldCounts:
    """Records that are not in the rows."""
    cursor.execute(
        f"SELECT (SELECT count(*) FROM {SCHEMA}.held_record WHERE held_as = 'parked'), "
        f"(SELECT coalesce(sum(num_duplicates), 0)::bigint FROM {SCHEMA}.reader_position), "
        f"(SELECT count(*) FROM {SCHEMA}.held_record WHERE kind = 'fenced'), "
        f"(SELECT count(*) FROM {SCHEMA}.stream_position WHERE num_waiting > 0), "
        f"(SELECT count(DISTINCT stream) FROM {SCHEMA}.held_record WHERE held_as = 'abandoned'), "
        f"(SELECT count(*) FROM {SCHEMA}.held_record WHERE kind = 'foreign')"
    )
    row = cursor.fetchone()
    assert row is not None  # noqa: S101  # a SELECT of scalars has one row
    return HeldCounts(*row)


def count_held_by_kind(cursor: Cursor) -> dict[tuple[str, str], int]:
    """(held_as, kind) -> records."""
    cursor.execute(f"SELECT held_as, kind, count(*) FROM {SCHEMA}.held_record GROUP BY 1, 2")
    return {(held_as, kind): count for held_as, kind, count in cursor.fetchall()}
