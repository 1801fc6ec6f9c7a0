"""What an operator gave up is left out by a trainer that continues, as by the tables."""

from datetime import datetime
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import pytest

from consumers.fold.order import Order, OrderRules, PartitionProgress
from consumers.fold.parse import parse_record
from consumers.log.reader import LogRecord
from producer.emit import Emitter
from producer.errors import MismatchError
from producer.log.stream_history import StreamHistory, read_streams_into
from producer.log.writer import Record
from producer.resume.training_history import read_training_history
from producer.training.run import run
from schemas.environment import EnvironmentCreationStarted, EnvironmentRequested
from schemas.event import StreamPoint
from schemas.ids import EPOCH_START, training_id, uuid7
from schemas.installation import Installation
from schemas.operator_drops import Decision, Drop, Drops, Scope, encode_decision
from schemas.wire import encode
from tests.support.small_run import small

OWNER = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
SUBJECT = f"environment/{OWNER}"
NOW = datetime.fromisoformat("2026-01-01T00:00:00+00:00")


def value(sequence: int) -> bytes:
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


def drop(scope: Scope, content: bytes, point: StreamPoint | None = None) -> Drop:
    return Drop(scope, SUBJECT, sha256(content).hexdigest(), point)


VALUES = [value(1), value(2), b"garbage", value(3), value(5), value(6)]
CASES = {
    "nothing": [],
    "the unreadable record": [drop("record", VALUES[2])],
    "the gap too": [drop("record", VALUES[2]), drop("gap", VALUES[4], StreamPoint(1, 3))],
    "a gap from elsewhere": [drop("record", VALUES[2]), drop("gap", VALUES[4], StreamPoint(1, 2))],
    "a readable record": [drop("record", VALUES[1]), drop("record", VALUES[2])],
    "the rest": [drop("rest", VALUES[1])],
    "the rest after the gap": [
        drop("record", VALUES[2]),
        drop("gap", VALUES[4], StreamPoint(1, 3)),
        drop("rest", VALUES[5]),
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_a_trainer_and_the_tables_agree_on_where_a_stream_is(case: str) -> None:
    drops = Drops(CASES[case])
    order = Order({}, lambda _stream, _envelope: None, OrderRules("log", drops))
    history = StreamHistory(SUBJECT, drops=drops)
    stopped = False
    for offset, content in enumerate(VALUES):
        record = LogRecord("cua.rollouts", 0, offset, SUBJECT, content, NOW)
        order.take(parse_record(record), PartitionProgress())
        try:
            history.read_value(content)
        except Exception:  # noqa: BLE001  # the tables park the stream there
            stopped = True
            break
    stream = order.streams[SUBJECT]
    assert (stream.parked_since is not None) == stopped
    assert history.is_abandoned == stream.abandoned
    assert history.position.point == stream.position.point
    assert [one.sequence for one in history.waiting] == [
        held.envelope.sequence for held in stream.waiting if held.envelope
    ]


def give_up(installation: Installation, *drops: Drop) -> None:
    path: Path = installation.operator_drops_path
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        encode_decision(Decision(one, is_undone=False, made_at=NOW, made_by="a", reason=None))
        for one in drops
    ]
    path.write_bytes(b"".join(lines))


def test_the_file_of_the_home_is_read_with_every_stream(installation: Installation) -> None:
    give_up(installation, drop("record", VALUES[2]))
    with Emitter.open(installation) as emitter:
        emitter.log.local.append([Record("cua.rollouts", SUBJECT, one) for one in VALUES[:4]])
        assert emitter.log.read_back(SUBJECT, {}).position.point == StreamPoint(1, 3)
        installation.operator_drops_path.unlink()
        with pytest.raises(MismatchError):
            emitter.log.read_back(SUBJECT, {})


def test_a_file_that_says_nothing_readable_stops_the_trainer(installation: Installation) -> None:
    give_up(installation)
    installation.operator_drops_path.write_bytes(b"garbage\n")
    with (
        Emitter.open(installation) as emitter,
        pytest.raises(MismatchError, match=r"operator_drops\.jsonl"),
    ):
        emitter.log.read_back(SUBJECT, {})


def test_a_training_whose_rest_was_given_up_is_not_continued(installation: Installation) -> None:
    run(small(num_steps=1), installation=installation)
    own = training_id("small")
    with Emitter.open(installation) as emitter:
        log = emitter.log.local
        subject = f"training/{own}"
        records = [content for _, content in log.read_streams("cua.training", [subject], {})]
        give_up(installation, Drop("rest", subject, sha256(records[-1]).hexdigest(), None))
        history = read_training_history(emitter.log, own, start={}, since={})
        assert history.training_stream(own).is_abandoned
    with pytest.raises(MismatchError, match="--rest"):
        run(small(num_steps=2), installation=installation)


def test_a_rollout_that_was_given_up_is_run_again(installation: Installation) -> None:
    run(small(num_steps=1), installation=installation)
    own = training_id("small")
    with Emitter.open(installation) as emitter:
        log = emitter.log.local
        history = read_training_history(emitter.log, own, start={}, since={})
        rollout = next(one for one in history.streams if one.startswith("rollout/"))
        records = [content for _, content in log.read_streams("cua.rollouts", [rollout], {})]
        give_up(installation, Drop("rest", rollout, sha256(records[-1]).hexdigest(), None))
        history = read_training_history(emitter.log, own, start={}, since={})
        stream = history.of(rollout)
        assert stream.is_abandoned
        assert len(stream.events) == len(records) - 1
        read_streams_into({rollout: stream}, log, {}, topic_prefix="cua.")
        assert len(stream.events) == len(records) - 1
