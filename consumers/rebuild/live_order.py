"""Streams in several partitions: a replay takes their records in the order of the live tables.

Nothing else decides between them (`fold.arrivals`). A replay takes a record of such a stream only
after those of other partitions that the tables read before it, and leaves its partition alone until
then. The order in which the tables were filled is one that satisfies that, so there is always a
partition to go on with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from consumers.database.connection import Cursor
from consumers.errors import MismatchError
from consumers.fold.arrivals import Arrivals, stored_arrivals
from consumers.fold.parse import ParsedRecord, parse_record
from consumers.log.reader import LogReader, LogRecord, TopicPartition
from consumers.projection.positions import Positions

NAMED = 3
"""Streams that a message names; the others are counted."""


class Blocked(NamedTuple):
    """A partition whose next record has to wait."""

    offset: int
    """Of that record."""
    needs: Positions
    """What must be read of other partitions before."""


@dataclass(slots=True)
class LiveOrder:
    """Of one snapshot of the live tables, for one replay. Not thread-safe."""

    arrivals: Mapping[str, Arrivals]
    """Of every stream in several partitions whose order is known."""
    blocked: dict[TopicPartition, Blocked] = field(default_factory=dict)
    left_out: frozenset[TopicPartition] = frozenset()
    """What the reader does not read, because it was blocked at the last seek."""

    def __bool__(self) -> bool:
        """Whether any stream is in several partitions."""
        return bool(self.arrivals)

    def take(
        self, records: Sequence[LogRecord], read: Mapping[TopicPartition, int], until: Positions
    ) -> list[ParsedRecord]:
        """Those of these records whose turn it is, of a replay up to `until`.

        `read`: the positions before these records. A partition is blocked from a record on that has
        to wait.
        """
        reached = dict(read)
        taken = []
        for record in records:
            at = TopicPartition(record.topic, record.partition)
            if at in self.blocked:
                continue
            parsed = parse_record(record)
            needs = self._needs(parsed, at, until)
            if is_reached(needs, reached):
                reached[at] = record.offset + 1
                taken.append(parsed)
            else:
                self.blocked[at] = Blocked(record.offset, needs)
        return taken

    def _needs(self, parsed: ParsedRecord, at: TopicPartition, until: Positions) -> Positions:
        arrivals = self.arrivals.get(parsed.stream)
        needs: Positions = {}
        if arrivals is not None:
            for run in arrivals.runs[: arrivals.rank(*parsed.record[:3])]:
                other = TopicPartition(run.topic, run.partition)
                if other != at:
                    needs[other] = min(run.next_offset or 0, until.get(other, 0))
        return needs

    def seek(self, reader: LogReader, read: Mapping[TopicPartition, int], until: Positions) -> None:
        """Read where nothing blocks. MismatchError when all that is left is blocked."""
        still = {
            at: blocked
            for at, blocked in self.blocked.items()
            if not is_reached(blocked.needs, read)
        }
        if still.keys() == self.blocked.keys() == self.left_out:
            return
        self.blocked, self.left_out = still, frozenset(still)
        behind = {at: read.get(at, 0) for at, end in until.items() if read.get(at, 0) < end}
        free = {at: offset for at, offset in behind.items() if at not in self.blocked}
        if behind and not free:
            at, blocked = min(self.blocked.items())
            message = (
                f"{at.topic}/{at.partition} offset {blocked.offset} comes before what the tables"
                " read before it: its stream is in several partitions, and not in those in which"
                " the tables read it. This is another log, or records were deleted"
            )
            raise MismatchError(message)
        if free:
            reader.seek(free)


def is_reached(needs: Positions, read: Mapping[TopicPartition, int]) -> bool:
    """Whether so much was read."""
    return all(read.get(at, 0) >= offset for at, offset in needs.items())


def read_live_order(cursor: Cursor, schema: str) -> LiveOrder:
    """In which order the tables of this schema read split streams, in the cursor's snapshot."""
    found = {name: stored_arrivals(runs) for name, runs in _split(cursor, schema)}
    return LiveOrder({name: one for name, one in found.items() if one.is_ordered})


def describe_unordered(live: Cursor, live_schema: str, replay: Cursor, schema: str) -> str | None:
    """Names the streams that a replay found in several partitions, in no order that is known.

    None: there are none, so whatever differs is not a matter of order.
    """
    split = {name: stored_arrivals(runs) for name, runs in _split(replay, schema)}
    live.execute(
        f'SELECT stream FROM "{live_schema}".stream_position WHERE stream = ANY(%s) AND'
        " (partitions IS NULL OR partitions -> 0 ->> 2 IS NULL) ORDER BY stream",
        (list(split),),
    )
    names = [name for (name,) in live.fetchall()]
    if not names:
        return None
    return (
        f"the tables have not kept in which order they read {_named(names, split)}, which the log"
        " has in several partitions; `cua-project rebuild` reads them again and keeps it"
    )


def require_decided(order: LiveOrder, replay: Cursor, schema: str) -> None:
    """MismatchError, naming them, when the live tables did not decide the order of some streams.

    Of those that a replay in this order found in several partitions: the tables kept no order, or
    more than one partition has records that they have not read.
    """
    split = {name: stored_arrivals(runs) for name, runs in _split(replay, schema)}
    names = [
        name
        for name, found in sorted(split.items())
        if not found.is_ordered
        or name not in order.arrivals
        or len(_unread(found, order.arrivals[name])) > 1
    ]
    if names:
        message = (
            f"the tables do not say in which order to read {_named(names, split)}, which the log"
            " has in several partitions. `cua-project run --once` reads what they have not read,"
            " and `cua-project rebuild` keeps the order where older code kept none; then run the"
            " same command again"
        )
        raise MismatchError(message)


def _split(cursor: Cursor, schema: str) -> list[tuple[str, list[list[object]]]]:
    cursor.execute(
        f'SELECT stream, partitions FROM "{schema}".stream_position WHERE'
        " jsonb_array_length(partitions) > 1"
    )
    return [(name, runs) for name, runs in cursor.fetchall()]


def _unread(found: Arrivals, live: Arrivals) -> list[TopicPartition]:
    """The partitions of which more was found than the tables have read."""
    ends, read = _ends(found), _ends(live)
    return [at for at, end in ends.items() if end > read.get(at, 0)]


def _ends(arrivals: Arrivals) -> Positions:
    # Of one partition later runs end later.
    return {TopicPartition(run.topic, run.partition): run.next_offset or 0 for run in arrivals.runs}


def _named(names: Sequence[str], split: Mapping[str, Arrivals]) -> str:
    named = "; ".join(f"{name} ({_places(split[name])})" for name in names[:NAMED])
    more = f" and {len(names) - NAMED:,} others" if len(names) > NAMED else ""
    return named + more


def _places(arrivals: Arrivals) -> str:
    return ", ".join(sorted({f"{run.topic}/{run.partition}" for run in arrivals.runs}))
