"""A stream read back: whatever repetitions and detours the log holds, the same facts count."""

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.errors import MismatchError
from producer.log.local import LocalLog
from producer.log.stream_history import StreamHistory, read_streams_into
from producer.log.writer import Record
from schemas.environment import EnvironmentCreationStarted, EnvironmentRequested
from schemas.event import Envelope, StreamPoint
from schemas.ids import EPOCH_START, uuid7
from schemas.wire import encode, read_envelope

OWNER = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
SUBJECT = f"environment/{OWNER}"


def value(
    sequence: int, *, epoch: int = 1, source: str = "//a/1/x", continues: StreamPoint | None = None
) -> bytes:
    first = EnvironmentRequested(env_type="a", box_type="b", config={})
    return encode(
        first if (epoch, sequence) == (1, 1) else EnvironmentCreationStarted(),
        id=uuid7(EPOCH_START),
        source=source,
        time=EPOCH_START,
        subject=SUBJECT,
        epoch=epoch,
        sequence=sequence,
        continues=continues,
    )


STREAM: list[Envelope] = [
    *(read_envelope(value(number)) for number in range(1, 6)),
    read_envelope(value(1, epoch=2, source="//b/2/y", continues=StreamPoint(1, 5))),
    *(read_envelope(value(number, epoch=2, source="//b/2/y")) for number in range(2, 5)),
]


def fold(envelopes: list[Envelope]) -> StreamHistory:
    history = StreamHistory(SUBJECT)
    for envelope in envelopes:
        history.read(envelope)
    return history


@given(st.permutations(range(len(STREAM))), st.lists(st.integers(0, len(STREAM) - 1), max_size=30))
def test_any_order_and_any_repetitions_give_the_same_stream(
    order: list[int], repeated: list[int]
) -> None:
    history = fold([STREAM[index] for index in [*repeated, *order, *repeated]])
    assert [event.envelope for event in history.events] == STREAM
    assert history.position.point == StreamPoint(2, 4)
    assert history.position.source == "//b/2/y"
    assert history.statuses == {("environment", OWNER): "creating"}
    assert not history.waiting
    assert history.position.refused == set()


@given(st.lists(st.integers(0, len(STREAM)), max_size=10))
def test_sending_again_from_any_earlier_record_changes_nothing(
    restarts: list[int],
) -> None:
    log = list(STREAM)
    for start in restarts:
        log = [*log[: start + 1], *log[max(0, start - 3) :]]
    history = fold(log)
    assert [event.envelope for event in history.events] == STREAM
    assert not history.waiting
    assert history.position.refused == set()


def test_a_record_that_cannot_be_read_stops_whoever_would_continue_the_stream(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    log = LocalLog(tmp_path_factory.mktemp("log") / "log.sqlite3")
    log.append(
        [Record("cua.rollouts", SUBJECT, value(1)), Record("cua.rollouts", SUBJECT, b"not json")]
    )
    with pytest.raises(MismatchError, match="cannot be continued"):
        read_streams_into({SUBJECT: StreamHistory(SUBJECT)}, log, {}, topic_prefix="cua.")
    other = StreamHistory(f"environment/{uuid4()}")
    read_streams_into({other.subject: other}, log, {}, topic_prefix="cua.")
    assert not other.exists
    log.close()
