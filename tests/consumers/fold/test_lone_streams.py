"""Records that are in no stream: each is alone, whatever others call it."""

from datetime import timedelta
from itertools import permutations

from consumers.fold.fold import Fold
from consumers.fold.parse import parse_record
from consumers.log.reader import LogRecord
from schemas.decision import lone_stream
from schemas.environment import EnvironmentCreationStarted
from schemas.home import home_partition
from schemas.ids import EPOCH_START, uuid7
from schemas.wire import encode

LOG = "local-1"
GARBAGE = b"garbage"
NAME = lone_stream("rollouts", 3, GARBAGE)


def named(value: bytes, offset: int) -> LogRecord:
    """A record with the key NAME, where a decision about the garbage would be."""
    appended_at = EPOCH_START + timedelta(seconds=1)
    return LogRecord("cua.training", home_partition(NAME, 12), offset, NAME, value, appended_at)


def test_nobody_elses_record_is_in_the_stream_of_one_record_in_any_order_of_reading() -> None:
    garbage = LogRecord("cua.rollouts", 3, 0, None, GARBAGE, EPOCH_START)
    event = encode(
        EnvironmentCreationStarted(),
        id=uuid7(EPOCH_START),
        source="//a/1/x",
        time=EPOCH_START,
        subject=NAME,
        epoch=1,
        sequence=1,
    )
    results = []
    for order in permutations([garbage, named(b"other", 0), named(event, 1)]):
        fold = Fold({}, log_id=LOG, memory={})
        batch = fold.take_all([parse_record(record, LOG) for record in order])
        unapplied = sorted(
            (unapplied.record.value, unapplied.state, unapplied.kind, unapplied.stream)
            for unapplied in batch.unapplied.values()
        )
        results.append((unapplied, {stream.subject for stream in batch.streams.values()}))
    assert all(result == results[0] for result in results)
    (unapplied, streams) = results[0]
    assert [kind for _, _, kind, _ in unapplied] == ["unreadable"] * 3
    assert len(streams) == 3
    assert next(stream for value, _, _, stream in unapplied if value == GARBAGE) == NAME


def test_a_record_in_no_stream_keeps_its_name_in_topics_of_another_prefix() -> None:
    names = {
        parse_record(LogRecord(topic, 3, 0, None, GARBAGE, EPOCH_START), LOG).stream
        for topic in ("cua.rollouts", "mirror.cua.rollouts", "rollouts")
    }
    assert names == {NAME}
