"""For any order of records and decisions, a trainer and the tables agree on where a stream is."""

from collections.abc import Iterator, Mapping
from itertools import count
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.fold.apply import Rejection
from consumers.fold.order import Order, OrderRules, PartitionProgress
from consumers.fold.parse import parse_record
from consumers.fold.stream import Stream
from consumers.log.reader import LogRecord
from producer.errors import MismatchError
from producer.log.stream_history import Dropped, StreamHistory, read_decided, read_streams_into
from schemas.base import Payload
from schemas.decision import DropUndone, GapDropped, RecordDropped, RestDropped, value_hash
from schemas.environment import EnvironmentCreationStarted, EnvironmentRequested
from schemas.event import Envelope
from schemas.home import home_partition
from schemas.ids import EPOCH_START, uuid7
from schemas.wire import UnknownSchemaError, encode, read_payload

OWNER = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
SUBJECT = f"environment/{OWNER}"
HOME = home_partition(SUBJECT, 12)
BY = {"made_by": "a"}
NUM_EVENTS = 6


def event(sequence: int) -> bytes:
    first = EnvironmentRequested(env_type="a", box_type="b", config={})
    return encode(
        first if sequence == 1 else EnvironmentCreationStarted(),
        id=uuid7(EPOCH_START),
        source="//a/1/x",
        time=EPOCH_START,
        subject=SUBJECT,
        epoch=1,
        sequence=sequence,
    )


def decision(payload: Payload) -> bytes:
    return encode(
        payload, id=uuid7(EPOCH_START), source="//a/1/decisions", time=EPOCH_START, subject=SUBJECT
    )


EVENTS = [event(sequence) for sequence in range(1, NUM_EVENTS + 1)]
LATER_EVENT = event(3).replace(b"environment.creation_started", b"environment.later_fact")
LATER_DECISION = decision(GapDropped(from_epoch=1, from_sequence=1, **BY)).replace(
    b"gap_dropped", b"later_decision"
)
SPOILT = [b"garbage", LATER_EVENT, LATER_DECISION]
DECISIONS = [
    *(decision(RecordDropped(value_sha256=value_hash(value), **BY)) for value in SPOILT),
    *(decision(RestDropped(value_sha256=value_hash(value), **BY)) for value in SPOILT),
    *(decision(DropUndone(value_sha256=value_hash(value), **BY)) for value in SPOILT),
    *(
        decision(GapDropped(from_epoch=min(1, sequence), from_sequence=sequence, **BY))
        for sequence in range(NUM_EVENTS)
    ),
]
Records = list[bytes]


@st.composite
def histories(draw: st.DrawFn) -> Records:
    """Events without some, each spoilt record at most once, and decisions wherever they fall."""
    kept = [value for value in EVENTS if draw(st.integers(0, 3))]
    spoilt = draw(st.lists(st.sampled_from(SPOILT), unique=True))
    decisions = draw(st.lists(st.sampled_from(DECISIONS), max_size=6))
    records = draw(st.permutations([*kept, *spoilt])) if draw(st.booleans()) else kept + spoilt
    for one in decisions:
        records.insert(draw(st.integers(0, len(records))), one)
    return list(records)


class OneStream:
    """A log with the records of one stream."""

    def __init__(self, records: Records) -> None:
        self.records = records

    def read_streams(
        self, topic: str, keys: object, since: Mapping[tuple[str, int], int]
    ) -> Iterator[tuple[str, bytes]]:
        del topic, keys, since
        return ((SUBJECT, value) for value in self.records)


class ReadStream(dict[str, StreamHistory]):
    @property
    def decisions(self) -> Dropped:
        return {SUBJECT: self[SUBJECT].decisions} if self[SUBJECT].decisions else {}


def trained(records: Records) -> StreamHistory | None:
    """What a trainer reads; None: it cannot continue the stream."""

    def new(dropped: Dropped) -> ReadStream:
        return ReadStream({SUBJECT: StreamHistory(SUBJECT, drops=dropped.get(SUBJECT, {}))})

    def read(streams: ReadStream) -> None:
        log = OneStream(records)
        read_streams_into(streams, log, {}, topic_prefix="cua.")  # type: ignore[arg-type]

    try:
        return read_decided(new, read)[SUBJECT]
    except MismatchError:
        return None


def tabled(records: Records) -> tuple[Stream, list[int]]:
    """What the tables hold: the stream, and the sequences of the events applied."""
    applied: list[int] = []

    def apply(_: Stream, envelope: Envelope) -> Rejection | None:
        try:
            read_payload(envelope)
        except UnknownSchemaError as error:
            return Rejection("unknown_schema", str(error))
        applied.append(envelope.sequence)
        return None

    order = Order({}, apply, OrderRules("log"), memory={})
    offsets = count()
    for value in records:
        record = LogRecord("cua.rollouts", HOME, next(offsets), SUBJECT, value, EPOCH_START)
        order.take(parse_record(record, "log"), PartitionProgress())
    return order.streams[SUBJECT], applied


@settings(max_examples=500, deadline=None)
@given(records=histories().filter(bool))
def test_a_trainer_and_the_tables_agree_on_where_a_stream_is(records: Records) -> None:
    history = trained(records)
    stream, applied = tabled(records)
    assert (history is None) == (stream.parked_since is not None)
    if history is None:
        return
    assert history.is_dropped == stream.dropped
    assert history.position == stream.position
    assert [one.envelope.sequence for one in history.events] == applied
    waiting = [unapplied.envelope.sequence for unapplied in stream.waiting if unapplied.envelope]
    assert [one.sequence for one in history.waiting] == waiting
