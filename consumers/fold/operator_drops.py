"""Operators' decisions to give up a record, the rest of a stream or a gap.

Stored in `cua_ops`, which a rebuild does not replace, and keyed by stream and value hash, which
survive a move to another log: a rebuild honours them.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, NamedTuple

from consumers.tables import OPS_SCHEMA
from schemas.event import StreamPoint

if TYPE_CHECKING:
    from psycopg2.extensions import cursor as Cursor  # noqa: N812

Scope = Literal["record", "rest"]


def value_hash(value: bytes) -> str:
    """SHA-256 of a record's value."""
    return sha256(value).hexdigest()


class Drop(NamedTuple):
    """One decision."""

    scope: Literal["record", "rest", "gap"]
    stream: str | None
    """None: a record that names no stream."""
    value_sha256: str
    """Of the dropped record, the first of the dropped rest, or the first after the gap."""
    from_point: StreamPoint | None
    """Only of a gap: the stream's position when it was given up."""


class Drops:
    """All decisions of an installation. Almost always empty, and then lookups cost nothing."""

    def __init__(self, drops: Iterable[Drop] = ()) -> None:
        self._records: dict[tuple[str | None, str], Scope] = {}
        self._gaps: set[tuple[str | None, str, StreamPoint]] = set()
        for drop in drops:
            if drop.scope == "gap":
                assert drop.from_point is not None  # noqa: S101  # set where gap drops are made
                self._gaps.add((drop.stream, drop.value_sha256, drop.from_point))
            else:
                self._records[drop.stream, drop.value_sha256] = drop.scope

    def scope(self, stream: str | None, value: bytes) -> Scope | None:
        """Whether this record, or the stream from it on, was dropped."""
        return self._records.get((stream, value_hash(value))) if self._records else None

    def gives_up_gap(self, stream: str, value: bytes, point: StreamPoint) -> bool:
        """Whether the gap between this position and this record was given up."""
        return bool(self._gaps) and (stream, value_hash(value), point) in self._gaps


def load_drops(cursor: "Cursor") -> Drops:
    """Every stored decision."""
    cursor.execute(
        "SELECT scope, stream, value_sha256, from_epoch, from_sequence FROM"
        f" {OPS_SCHEMA}.operator_drop"
    )
    return Drops(
        Drop(scope, stream, value_sha256, None if epoch is None else StreamPoint(epoch, sequence))
        for scope, stream, value_sha256, epoch, sequence in cursor.fetchall()
    )


def store_drop(cursor: "Cursor", drop: Drop, *, made_by: str, reason: str | None) -> None:
    """Store a decision in the caller's transaction."""
    epoch, sequence = (None, None) if drop.from_point is None else drop.from_point
    cursor.execute(
        f"INSERT INTO {OPS_SCHEMA}.operator_drop (scope, stream, value_sha256, from_epoch,"
        " from_sequence, made_at, made_by, reason) VALUES (%s, %s, %s, %s, %s, clock_timestamp(),"
        " %s, %s)",
        (drop.scope, drop.stream, drop.value_sha256, epoch, sequence, made_by, reason),
    )
