"""The wanted events of a span of the log, those of each stream in order."""

from collections.abc import Callable, Collection, Iterator
from uuid import UUID

from consumers.fold.ordered_events import OrderedEvents
from consumers.fold.parse import ParsedRecord, parse_record
from consumers.log.reader import LogReader, TopicPartition
from consumers.tail.reading import read_bounded
from schemas.catalogue import stream_kind
from schemas.event import Event
from schemas.local_index import places_of_trainings

Wanted = Callable[[ParsedRecord], bool]


def read_events(
    ordered: OrderedEvents,
    reader: LogReader,
    partitions: Collection[TopicPartition],
    until: dict[TopicPartition, int],
    wanted: Wanted,
    trainings: Collection[UUID] = (),
) -> Iterator[Event]:
    """Every wanted event of these partitions, from their beginning.

    `trainings`: wanted are records of these alone; a log with an index is not read whole then.
    """
    starts = reader.beginning_offsets(list(partitions))
    stops = {at: until[at] for at in partitions}
    places = places_of_trainings(trainings) if trainings else None
    for record in read_bounded(reader, starts, stops, places):
        parsed = parse_record(record, reader.log_id)
        if wanted(parsed):
            yield from ordered.take(parsed)


def of_kinds(kinds: Collection[str], trainings: Collection[UUID]) -> Wanted:
    """Records of streams of these kinds and of these trainings; of all when there are none.

    A record that cannot be read stops its stream also here; it may come first, and so may a
    decision about it. (With an index it is found only in a block that has one of the trainings.)
    """
    owners = {str(training) for training in trainings}
    streams: set[str] = set()

    def is_wanted(parsed: ParsedRecord) -> bool:
        if stream_kind(parsed.stream) not in kinds:
            return False
        if not owners:
            return True
        envelope = parsed.envelope
        if envelope is None or envelope.is_decision:
            return True
        if envelope.training_id is not None and str(envelope.training_id) in owners:
            streams.add(parsed.stream)
        return parsed.stream in streams or parsed.stream.partition("/")[2] in owners

    return is_wanted
