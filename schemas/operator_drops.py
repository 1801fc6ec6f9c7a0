"""Operators' decisions to give up a record, the rest of a stream or a gap: one rule for everybody.

The tables' database keeps them (`cua_ops.operator_drop`). A copy is a file of CUA_HOME
(`Installation.operator_drops_path`), one JSON object per line, only ever appended to, so that a
resuming trainer, which knows no database, agrees with the tables. Both ask `Drops` the same
questions at the same places:

- a record that is next in its stream, or that cannot be read: `scope`. "record": pass over it (the
  position moves past a readable one; an unreadable one has no known place, so it stays); "rest":
  the stream is abandoned, nothing from this record on counts.
- a stream whose records all wait behind a gap: `after_gap`. Of a waiting record among its hashes
  `StreamPosition.skip_gap`, and the record is next.

Decisions are keyed by stream and hash of the value, which survive a move to another log.
"""

import json
from collections.abc import Iterable, Set
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from schemas.event import StreamPoint, parse_stream_point

RecordScope = Literal["record", "rest"]
Scope = Literal["record", "rest", "gap"]


def value_hash(value: bytes) -> str:
    """SHA-256 of a record's value."""
    return sha256(value).hexdigest()


class Drop(NamedTuple):
    """What is given up."""

    scope: Scope
    stream: str | None
    """None: a record that names no stream."""
    value_sha256: str
    """Of the dropped record, the first of the dropped rest, or the first after the gap."""
    from_point: StreamPoint | None
    """Only of a gap: the stream's position when it was given up."""


class Decision(NamedTuple):
    """One line of the file."""

    drop: Drop
    is_undone: bool
    """True: an earlier decision about the same drop is taken back."""
    made_at: datetime
    made_by: str
    reason: str | None


class Drops:
    """What is given up. Almost always empty, and then questions cost nothing. Immutable."""

    def __init__(self, drops: Iterable[Drop] = ()) -> None:
        self._records: dict[str | None, dict[str, RecordScope]] = {}
        self._gaps: dict[tuple[str | None, StreamPoint], set[str]] = {}
        for drop in drops:
            if drop.scope == "gap":
                assert drop.from_point is not None  # noqa: S101  # set where gap drops are made
                values = self._gaps.setdefault((drop.stream, drop.from_point), set())
                values.add(drop.value_sha256)
            else:
                self._records.setdefault(drop.stream, {})[drop.value_sha256] = drop.scope

    def __bool__(self) -> bool:
        """Whether anything is given up."""
        return bool(self._records or self._gaps)

    def scope(self, stream: str | None, value: bytes) -> RecordScope | None:
        """Whether this record, or the stream from it on, is given up."""
        of_stream = self._records.get(stream)
        return None if of_stream is None else of_stream.get(value_hash(value))

    def after_gap(self, stream: str, point: StreamPoint) -> Set[str]:
        """Hashes of the records before which the gap after this position is given up."""
        return self._gaps.get((stream, point), frozenset())


def standing(decisions: Iterable[Decision]) -> dict[Drop, Decision]:
    """The last decision about each drop, undone ones included."""
    return {decision.drop: decision for decision in decisions}


def read_operator_drops(path: Path) -> Drops:
    """What the file gives up; nothing when there is no file. ValueError, OSError."""
    last = standing(read_decisions(path))
    return Drops(drop for drop, decision in last.items() if not decision.is_undone)


def read_decisions(path: Path) -> list[Decision]:
    """Every decision in the file, oldest first. ValueError for a line that is none; OSError."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    # A last line without its end was cut off while it was written: it does not count.
    *lines, _ = content.split(b"\n")
    decisions = []
    for number, line in enumerate(lines, 1):
        try:
            decisions.append(_decode(line))
        except (ValueError, TypeError, KeyError) as error:
            message = (
                f"{path} line {number} is no decision of `cua-project parked drop` ({error});"
                " remove the line, and drop again what it was about"
            )
            raise ValueError(message) from None
    return decisions


def encode_decision(decision: Decision) -> bytes:
    """One line of the file."""
    drop = decision.drop
    point = drop.from_point
    fields = {
        "scope": drop.scope,
        "stream": drop.stream,
        "value_sha256": drop.value_sha256,
        "from": None if point is None else str(point),
        "undone": decision.is_undone,
        "made_at": decision.made_at.isoformat(),
        "made_by": decision.made_by,
        "reason": decision.reason,
    }
    return json.dumps(fields).encode() + b"\n"


def _decode(line: bytes) -> Decision:
    fields = json.loads(line)
    scope, stream, hash_ = fields["scope"], fields["stream"], fields["value_sha256"]
    point = None if fields["from"] is None else parse_stream_point(fields["from"])
    if scope not in get_args(Scope) or (scope == "gap") is not (point is not None):
        message = f"scope {scope!r} from {point}"
        raise ValueError(message)
    if not isinstance(hash_, str) or not isinstance(stream, str | None):
        message = "stream and value_sha256 must be strings"
        raise TypeError(message)
    drop = Drop(scope, stream, hash_, point)
    made_at = datetime.fromisoformat(fields["made_at"])
    return Decision(drop, fields["undone"] is True, made_at, fields["made_by"], fields["reason"])
