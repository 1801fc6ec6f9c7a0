"""Operators' decisions as they are stored, beside the tables and not among them.

A rebuild must find them.
"""

from consumers.database.connection import Cursor
from consumers.fold.operator_drops import Drop, Drops
from consumers.tables import OPS_SCHEMA
from schemas.event import StreamPoint


def load_drops(cursor: Cursor) -> Drops:
    """Every decision."""
    cursor.execute(
        "SELECT scope, stream, value_sha256, from_epoch, from_sequence FROM"
        f" {OPS_SCHEMA}.operator_drop"
    )
    return Drops(
        Drop(scope, stream, value_sha256, None if epoch is None else StreamPoint(epoch, sequence))
        for scope, stream, value_sha256, epoch, sequence in cursor.fetchall()
    )


def store_drop(cursor: Cursor, drop: Drop, *, made_by: str, reason: str | None) -> None:
    """A decision, from now on."""
    epoch, sequence = (None, None) if drop.from_point is None else drop.from_point
    cursor.execute(
        f"INSERT INTO {OPS_SCHEMA}.operator_drop (scope, stream, value_sha256, from_epoch,"
        " from_sequence, made_at, made_by, reason) VALUES (%s, %s, %s, %s, %s, clock_timestamp(),"
        " %s, %s)",
        (drop.scope, drop.stream, drop.value_sha256, epoch, sequence, made_by, reason),
    )
