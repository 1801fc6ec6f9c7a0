"""Operators' decisions: loaded for a fold; in the database also stored and taken back.

Kept in `cua_ops`, which a rebuild does not replace, so that a rebuild honours them. What they mean
is `schemas.operator_drops`, which a resuming trainer shares.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from consumers.errors import CuaProjectError
from consumers.tables import OPS_SCHEMA
from schemas.event import StreamPoint
from schemas.operator_drops import Drop, Drops, Scope, read_operator_drops, value_hash

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor  # noqa: N812

__all__ = ["Drop", "Drops", "Scope", "load_drops", "read_drops", "store_drop", "value_hash"]


def load_drops(cursor: "Cursor", streams: Iterable[str] | None = None) -> Drops:
    """Every stored decision that was not taken back.

    `streams`: only about these, and about records that name no stream.
    """
    of = "true" if streams is None else "(stream IS NULL OR stream = ANY(%(streams)s))"
    cursor.execute(
        "SELECT scope, stream, value_sha256, from_epoch, from_sequence FROM"
        f" {OPS_SCHEMA}.operator_drop WHERE undone_at IS NULL AND {of}",
        {"streams": None if streams is None else list(streams)},
    )
    return Drops(
        Drop(scope, stream, value_sha256, None if epoch is None else StreamPoint(epoch, sequence))
        for scope, stream, value_sha256, epoch, sequence in cursor.fetchall()
    )


def read_drops(path: Path) -> Drops:
    """Those of the file in CUA_HOME, for readers without a database. CuaProjectError."""
    try:
        return read_operator_drops(path)
    except (OSError, ValueError) as error:
        raise CuaProjectError(str(error)) from None


def store_drop(cursor: "Cursor", drop: Drop, *, made_by: str, reason: str | None) -> None:
    """Store a decision in the caller's transaction."""
    epoch, sequence = (None, None) if drop.from_point is None else drop.from_point
    cursor.execute(
        f"INSERT INTO {OPS_SCHEMA}.operator_drop (scope, stream, value_sha256, from_epoch,"
        " from_sequence, made_at, made_by, reason) VALUES (%s, %s, %s, %s, %s, clock_timestamp(),"
        " %s, %s)",
        (drop.scope, drop.stream, drop.value_sha256, epoch, sequence, made_by, reason),
    )
