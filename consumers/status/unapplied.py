"""Counts of what is not in the rows: waiting, parked and refused records, dropped streams."""

from typing import NamedTuple

from consumers.database.connection import Cursor
from consumers.fold.unapplied import GIVEN_UP
from consumers.tables import SCHEMA


class UnappliedCounts(NamedTuple):
    """Counts over all streams."""

    parked: int
    """Records."""
    duplicates: int
    fenced: int
    gaps: int
    """Streams that wait for a missing record."""
    dropped: int
    """Streams whose rest an operator dropped."""
    foreign: int
    """Records that are not in their stream's home, so in no stream."""


def count_unapplied(cursor: Cursor) -> UnappliedCounts:
    """Records that are not in the rows."""
    cursor.execute(
        f"SELECT (SELECT count(*) FROM {SCHEMA}.unapplied_record WHERE state = 'parked'), "
        f"(SELECT coalesce(sum(num_duplicates), 0)::bigint FROM {SCHEMA}.reader_position), "
        f"(SELECT count(*) FROM {SCHEMA}.unapplied_record WHERE kind = 'fenced'), "
        f"(SELECT count(*) FROM {SCHEMA}.stream_position WHERE num_waiting > 0), "
        f"(SELECT count(DISTINCT stream) FROM {SCHEMA}.unapplied_record WHERE state = 'refused'"
        " AND kind = ANY(%s)), "
        f"(SELECT count(*) FROM {SCHEMA}.unapplied_record WHERE kind = 'foreign')",
        (list(GIVEN_UP),),
    )
    row = cursor.fetchone()
    assert row is not None  # noqa: S101  # a SELECT of scalars has one row
    return UnappliedCounts(*row)


def count_unapplied_by_kind(cursor: Cursor) -> dict[tuple[str, str], int]:
    """(state, kind) -> records."""
    cursor.execute(f"SELECT state, kind, count(*) FROM {SCHEMA}.unapplied_record GROUP BY 1, 2")
    return {(state, kind): count for state, kind, count in cursor.fetchall()}
