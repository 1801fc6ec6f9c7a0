"""In which partitions a stream's records were read, and in which order.

A stream's order is its partition's. A topic that grew, or another program, can leave a stream in
two, and then the log gives no order to an unreadable record, another writer's claim or two records
in one place. The order in which the tables read them decides, so it is kept with the stream: a
replay follows it, and what is held is tried again in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

MAX_RUNS = 1_000
"""Of one stream. A topic that grows once gives two; a thousand are 30 KiB of JSON in every batch
that has a record of the stream."""
LAST = 1 << 62
"""The rank of a record that was not read."""


@dataclass(slots=True)
class Run:
    """Records of one partition, without one of another between them."""

    topic: str
    partition: int
    next_offset: int | None
    """After the last of them; None: there were too many runs, and only the places are known."""


@dataclass(slots=True)
class Arrivals:
    """Of one stream, from its first record on. Not thread-safe."""

    runs: list[Run] = field(default_factory=list)
    """In the order of reading."""
    is_complete: bool = True
    """False: code that kept no order has read some of the records."""

    @property
    def is_ordered(self) -> bool:
        """Whether the order of reading is known."""
        return self.is_complete and not (self.runs and self.runs[0].next_offset is None)

    def add(self, topic: str, partition: int, offset: int) -> None:
        """A record of the stream was read, whatever becomes of it."""
        if not self.is_complete:
            return
        runs = self.runs
        if runs:
            last = runs[-1]
            if last.next_offset is None:
                if all((run.topic, run.partition) != (topic, partition) for run in runs):
                    runs.append(Run(topic, partition, None))
                return
            if last.partition == partition and last.topic == topic:
                last.next_offset = offset + 1
                return
            if len(runs) == MAX_RUNS:
                places = dict.fromkeys((run.topic, run.partition) for run in runs)
                self.runs = [Run(*place, None) for place in places | {(topic, partition): None}]
                return
        runs.append(Run(topic, partition, offset + 1))

    def rank(self, topic: str, partition: int, offset: int) -> int:
        """The number of the run that a record is in; LAST: none; 0 where the order is not known."""
        if not self.is_ordered:
            return 0
        for number, run in enumerate(self.runs):
            if run.partition == partition and run.topic == topic:
                assert run.next_offset is not None  # noqa: S101  # the order is known
                if offset < run.next_offset:
                    return number
        return LAST

    def document(self) -> list[tuple[object, ...]] | None:
        """The column `stream_position.partitions`."""
        if not self.is_complete:
            return None
        return [(run.topic, run.partition, run.next_offset) for run in self.runs]


def stored_arrivals(document: Sequence[Sequence[object]] | None) -> Arrivals:
    """The arrivals that the column describes."""
    if document is None:
        return Arrivals(is_complete=False)
    return Arrivals([Run(*run) for run in document])  # type: ignore[arg-type]  # column type
