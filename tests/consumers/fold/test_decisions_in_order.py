"""An operator's decision takes effect where it is in its stream, and none is lost on the way."""

from datetime import timedelta
from uuid import UUID

from consumers.fold.fold import Fold, ReplayFilter
from consumers.fold.order import BEHIND, DROPPED
from consumers.fold.parse import ParsedRecord, parse_record
from consumers.fold.unapplied import Unapplied
from consumers.log.reader import LogRecord
from schemas.base import Payload
from schemas.decision import GapDropped, RecordDropped, RestDropped, value_hash
from schemas.environment import EnvironmentCreationStarted, EnvironmentRequested
from schemas.home import home_partition
from schemas.ids import EPOCH_START, uuid7
from schemas.wire import encode

SUBJECT = f"environment/{UUID('01890a5d-ac96-774b-bcce-b302099a8057')}"
HOME = home_partition(SUBJECT, 12)
GARBAGE = b"garbage"


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
        payload, id=uuid7(EPOCH_START), source="//a/1/x", time=EPOCH_START, subject=SUBJECT
    )


def at(offset: int, value: bytes) -> LogRecord:
    appended = EPOCH_START + timedelta(seconds=offset)
    return LogRecord("cua.rollouts", HOME, offset, SUBJECT, value, appended)


DROP_GARBAGE = decision(RecordDropped(value_sha256=value_hash(GARBAGE), made_by="a"))
DROP_GAP = decision(GapDropped(from_epoch=1, from_sequence=1, made_by="a"))


def parked(offset: int, value: bytes) -> Unapplied:
    """As older code parked it, which did not know the decisions."""
    envelope = parse_record(at(offset, value)).envelope
    return Unapplied("log", at(offset, value), "parked", "behind", BEHIND, SUBJECT, envelope)


def test_a_decision_behind_one_that_is_not_carried_out_yet_stays_parked() -> None:
    fold = Fold({}, log_id="log")
    fold.retry(map(parked, range(4), (GARBAGE, DROP_GARBAGE, DROP_GAP, event(1))))
    batch = fold.batch
    assert batch.decided == {SUBJECT}
    assert {unapplied.record.offset: unapplied.kind for unapplied in batch.unapplied.values()} == {
        0: "unreadable",
        2: "behind",
        3: "behind",
    }


def parsed(values: tuple[bytes, ...]) -> list[ParsedRecord]:
    return [parse_record(at(offset, value), "log") for offset, value in enumerate(values)]


def test_verify_parks_a_decision_that_the_tables_parked() -> None:
    there = ReplayFilter(parked=frozenset({("cua.rollouts", HOME, 1)}))
    fold = Fold({}, log_id="log", replay_filter=there, memory={})
    values = (event(1), DROP_GAP, event(3))
    batch = fold.take_all(
        [parse_record(at(offset, value), "log") for offset, value in enumerate(values)]
    )
    assert [
        (unapplied.record.offset, unapplied.kind) for unapplied in batch.unapplied.values()
    ] == [
        (1, "unknown_schema"),
        (2, "behind"),
    ]


def test_what_waited_in_a_stream_that_was_given_up_says_so() -> None:
    give_up = decision(RestDropped(value_sha256=value_hash(GARBAGE), made_by="a"))
    values = (event(1), event(3), give_up, GARBAGE)
    fold = Fold({}, log_id="log", memory={})
    batch = fold.take_all(
        [parse_record(at(offset, value), "log") for offset, value in enumerate(values)]
    )
    assert {
        unapplied.record.offset: (unapplied.state, unapplied.reason)
        for unapplied in batch.unapplied.values()
    } == {
        1: ("refused", DROPPED),
        3: ("refused", DROPPED),
    }
