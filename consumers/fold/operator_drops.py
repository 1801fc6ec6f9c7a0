"""What operators gave up: records, rests of streams, gaps.

Named by stream and value, so that a rebuild honours them.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from consumers.fold.held import value_hash
from schemas.event import StreamPoint

Scope = Literal["record", "rest"]


class Drop(NamedTuple):
    """One decision."""

    scope: Literal["record", "rest", "gap"]
    stream: str | None
    """None: a record that names no stream."""
    value_sha256: str
    from_point: StreamPoint | None
    """Of a gap: where the stream stood when it was given up."""


class Drops:
    """All decisions of an installation; empty almost always, and then it costs nothing."""

    def __init__(self, drops: Iterable[Drop] = ()) -> None:
        self._records: dict[tuple[str | None, str], Scope] = {}
        self._gaps: set[tuple[str | None, str, StreamPoint]] = set()
        for drop in drops:
            if drop.scope == "gap":
                assert drop.from_point is not None  # noqa: S101  # a gap begins somewhere (checked when it is made)
                self._gaps.add((drop.stream, drop.value_sha256, drop.from_point))
            else:
                self._records[drop.stream, drop.value_sha256] = drop.scope

    def scope(self, stream: str | None, value: bytes) -> Scope | None:
        """What was decided of this record."""
        return self._records.get((stream, value_hash(value))) if self._records else None

    def gives_up_gap(self, stream: str, value: bytes, point: StreamPoint) -> bool:
        """Whether the gap between this point and this record was given up."""
        return bool(self._gaps) and (stream, value_hash(value), point) in self._gaps
