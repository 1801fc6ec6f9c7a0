"""What operators decide about records that cannot be applied (`cua-project parked drop`).

A decision is a record of the stream that it concerns, in that stream's partition, and no part of
its sequence: it has neither epoch nor sequence. It is about an earlier record, which it names by
the hash of its value: the hash survives a move to another log. The first decision about a record
stands, until it is undone.
"""

from hashlib import sha256
from typing import ClassVar, Final, Literal

from schemas.base import Count, Payload
from schemas.event import DECISION_TYPES
from schemas.ids import natural_id

Scope = Literal["record", "passed", "rest", "dropped"]
Drops = dict[str, Scope]
"""Of one stream: hash of a value -> whether that record, or the stream from it on, is dropped;
`passed`, `dropped`: it was, when its turn came."""


def value_hash(value: bytes) -> str:
    """SHA-256 of a record's value."""
    return sha256(value).hexdigest()


LONE: Final = "record/"
"""How the names that `lone_stream` makes begin."""


def lone_stream(topic: str, partition: int, value: bytes) -> str:
    """The stream of a record that names none. Only its copies in the same partition share it.

    `topic`: without its prefix, so that a decision holds after a move to topics of another prefix.
    """
    return f"{LONE}{natural_id('record', topic, partition, value_hash(value))}"


class _Decision(Payload):
    """Who decided, and why."""

    made_by: str
    """The user who decided."""
    reason: str | None = None
    """As given with --reason; None: none was given."""


class _AboutRecord(_Decision):
    """A decision about a record, or about a stream from that record on."""

    value_sha256: str
    """Hash of the record's value, in hexadecimal."""


class RecordDropped(_AboutRecord):
    """A record that cannot be applied is passed over; what follows it in its stream is applied."""

    TYPE: ClassVar[str] = f"{DECISION_TYPES}record_dropped"


class RestDropped(_AboutRecord):
    """A stream is given up from a record on: its records are refused, and kept."""

    TYPE: ClassVar[str] = f"{DECISION_TYPES}rest_dropped"


class DropUndone(_AboutRecord):
    """The decision to drop a stream from this record on is taken back: its records are tried."""

    TYPE: ClassVar[str] = f"{DECISION_TYPES}drop_undone"


class GapDropped(_Decision):
    """Missing records of a stream are given up: the first that waits behind the gap is next.

    Without effect once the stream has got further.
    """

    TYPE: ClassVar[str] = f"{DECISION_TYPES}gap_dropped"

    from_epoch: Count
    """The stream's position before the gap."""
    from_sequence: Count
    """With `from_epoch`; 0/0: before the stream's first record."""


DECISIONS: tuple[type[Payload], ...] = (
    RecordDropped,
    RestDropped,
    GapDropped,
    DropUndone,
)


def decide(drops: Drops, payload: Payload) -> bool:
    """Change what is dropped of a stream; whether that changed. A gap is nothing to remember."""
    match payload:
        case RecordDropped(value_sha256=dropped) | RestDropped(value_sha256=dropped):
            if dropped in drops:
                return False
            drops[dropped] = "record" if isinstance(payload, RecordDropped) else "rest"
            return True
        case DropUndone(value_sha256=dropped) if drops.get(dropped) in {"rest", "dropped"}:
            del drops[dropped]
            return True
        case _:
            return False
