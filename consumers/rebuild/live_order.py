"""Streams in two partitions: what a replay takes last, because the live tables met it last.

A stream's order is its partition's. A topic that grew, or another program, can leave a stream in
two, and then no order of the log says whether an unreadable record, another writer's claim or the
end that an operator gave a stream came before the records of the other partition. The live tables
know: whatever they hold, and what follows the end of an abandoned stream, comes after everything
that they applied. A replay that takes it last finds the same rows, and still finds a record that
was held although it can be applied.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from consumers.database.connection import Cursor
from consumers.fold.parse import ParsedRecord
from consumers.log.reader import TopicPartition
from schemas.event import StreamPoint

HELD_AGAIN = ("parked", "refused")
"""Records behind a gap wait whatever the order."""


@dataclass(slots=True)
class LiveOrder:
    """Of one snapshot of the live tables. Not thread-safe."""

    held: Mapping[TopicPartition, frozenset[int]]
    """Offsets of the records that are parked or refused."""
    abandoned: Mapping[str, StreamPoint]
    """Streams of which an operator gave up the rest, and their last point that counts."""
    late: dict[TopicPartition, set[int]] = field(default_factory=dict)
    """Offsets of what was left out and is still to be taken."""
    is_over: bool = False
    """Everything is taken as it comes from here on."""

    def __bool__(self) -> bool:
        """Whether anything comes late."""
        return bool(self.held or self.abandoned)

    def is_in_time(self, parsed: ParsedRecord) -> bool:
        """Whether to take a record now; remembers those that come late."""
        if self.is_over or not self._is_late(parsed):
            return True
        record = parsed.record
        self.late.setdefault(TopicPartition(record.topic, record.partition), set()).add(
            record.offset
        )
        return False

    def _is_late(self, parsed: ParsedRecord) -> bool:
        record = parsed.record
        if record.offset in self.held.get(TopicPartition(record.topic, record.partition), ()):
            return True
        end = self.abandoned.get(parsed.stream or "")
        return end is not None and (
            parsed.envelope is None or (parsed.envelope.epoch, parsed.envelope.sequence) > end
        )


def read_live_order(cursor: Cursor, schema: str) -> LiveOrder:
    """What the tables of this schema met last, in the cursor's snapshot."""
    cursor.execute(
        f'SELECT topic, partition, array_agg(log_offset) FROM "{schema}".held_record'
        f' WHERE held_as = ANY(%s) AND log_id = (SELECT log_id FROM "{schema}".projection)'
        " GROUP BY 1, 2",
        (list(HELD_AGAIN),),
    )
    held = {
        TopicPartition(topic, partition): frozenset(offsets)
        for topic, partition, offsets in cursor.fetchall()
    }
    cursor.execute(
        f'SELECT stream, epoch, sequence FROM "{schema}".stream_position WHERE abandoned'
    )
    abandoned = {
        stream: StreamPoint(epoch, sequence) for stream, epoch, sequence in cursor.fetchall()
    }
    return LiveOrder(held, abandoned)
