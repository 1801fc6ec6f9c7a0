"""What an operator gave up is left out by a trainer that continues, as by the tables."""

from dataclasses import replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import pytest

from consumers.fold.fold import Fold, FoldedBatch
from consumers.fold.order import Order, OrderRules, PartitionProgress
from consumers.fold.parse import parse_record
from consumers.log.reader import LogRecord
from producer.emit import Emitter
from producer.errors import MismatchError
from producer.log.stream_history import StreamHistory, read_streams_into
from producer.log.writer import Record
from producer.resume.open_training import open_training
from producer.resume.resume_state import find_states, update_manifest
from producer.resume.training_history import read_training_history
from producer.training.run import run, utc_now
from schemas.environment import EnvironmentCreationStarted, EnvironmentRequested
from schemas.evaluation import EvaluationCreated, EvaluationStarted
from schemas.event import StreamPoint
from schemas.ids import EPOCH_START, baseline_id, eval_id, training_id, uuid7
from schemas.installation import Installation
from schemas.operator_drops import (
    Decision,
    Drop,
    Drops,
    Scope,
    encode_decision,
    read_operator_drops,
)
from schemas.wire import encode
from tests.support.reading import read_all
from tests.support.small_run import small

TOPIC_OF = {"training": "cua.training", "rollout": "cua.rollouts"}
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
    assert [item.sequence for item in history.waiting] == [
        held.envelope.sequence for held in stream.waiting if held.envelope
    ]


def give_up(installation: Installation, *drops: Drop) -> None:
    path: Path = installation.operator_drops_path
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        encode_decision(Decision(item, is_undone=False, made_at=NOW, made_by="a", reason=None))
        for item in drops
    ]
    path.write_bytes(b"".join(lines))


def test_the_file_of_the_home_is_read_with_every_stream(installation: Installation) -> None:
    give_up(installation, drop("record", VALUES[2]))
    with Emitter.open(installation) as emitter:
        emitter.log.local.append([Record("cua.rollouts", SUBJECT, item) for item in VALUES[:4]])
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
        assert history.own.is_abandoned
    with pytest.raises(MismatchError, match="--rest"):
        run(small(num_steps=2), installation=installation)


def test_a_rollout_that_was_given_up_is_run_again(installation: Installation) -> None:
    run(small(num_steps=1), installation=installation)
    own = training_id("small")
    with Emitter.open(installation) as emitter:
        log = emitter.log.local
        history = read_training_history(emitter.log, own, start={}, since={})
        rollout = next(stream for stream in history.streams if stream.startswith("rollout/"))
        records = [content for _, content in log.read_streams("cua.rollouts", [rollout], {})]
        give_up(installation, Drop("rest", rollout, sha256(records[-1]).hexdigest(), None))
        history = read_training_history(emitter.log, own, start={}, since={})
        stream = history.of(rollout)
        assert stream.is_abandoned
        assert len(stream.events) == len(records) - 1
        read_streams_into({rollout: stream}, log, {}, topic_prefix="cua.")
        assert len(stream.events) == len(records) - 1


def test_a_training_whose_creation_was_given_up_is_not_continued(
    installation: Installation,
) -> None:
    run(small(num_steps=1), installation=installation)
    subject = f"training/{training_id('small')}"
    with Emitter.open(installation) as emitter:
        log = emitter.log.local
        values = [content for _, content in log.read_streams("cua.training", [subject], {})]
    for given_up in (values[:1], values, [*values[:3], values[4]]):
        drops = [Drop("record", subject, sha256(item).hexdigest(), None) for item in given_up]
        give_up(installation, *drops)
        with pytest.raises(MismatchError, match="record that creates it"):
            run(small(num_steps=2), installation=installation)
    rest = Drop("rest", subject, sha256(values[1]).hexdigest(), None)
    give_up(installation, drops[0], rest)
    with pytest.raises(MismatchError, match="record that creates it"):
        run(small(num_steps=2), installation=installation)


OTHERS_EVENT = encode(
    EnvironmentCreationStarted(),
    id=uuid7(EPOCH_START),
    source="//a/1/x",
    time=EPOCH_START,
    subject=f"environment/{OWNER}",
    epoch=1,
    sequence=1,
)


@pytest.mark.parametrize("content", [b"garbage", OTHERS_EVENT], ids=["no event", "another's"])
@pytest.mark.parametrize("kind", ["training", "rollout"])
def test_whatever_has_the_key_of_a_stream_parks_it_for_the_trainer_too(
    installation: Installation, kind: str, content: bytes
) -> None:
    run(small(num_steps=1), installation=installation)
    own = training_id("small")
    with Emitter.open(installation) as emitter:
        history = read_training_history(emitter.log, own, start={}, since={})
        subject = next(stream for stream in history.streams if stream.startswith(kind))
        emitter.log.local.append([Record(TOPIC_OF[kind], subject, content)])
        read = partial(read_training_history, emitter.log, own, start={}, since={})
        with pytest.raises(MismatchError, match="parked drop"):
            read()
        with pytest.raises(MismatchError, match="parked drop"):
            emitter.log.read_back(subject, {})

        give_up(installation, Drop("rest", subject, sha256(content).hexdigest(), None))
        assert read().of(subject).is_abandoned
        assert emitter.log.read_back(subject, {}).is_abandoned


def test_an_unreadable_record_of_another_stream_is_nobody_elses_business(
    installation: Installation,
) -> None:
    run(small(num_steps=1), installation=installation)
    with Emitter.open(installation) as emitter:
        log = emitter.log
        log.local.append([Record("cua.training", f"training/{OWNER}", b"garbage")])
        log.local.append([Record("cua.rollouts", f"rollout/{OWNER}", OTHERS_EVENT)])
        history = read_training_history(log, training_id("small"), start={}, since={})
        assert not {f"training/{OWNER}", f"rollout/{OWNER}"} & history.streams.keys()


def begin_baseline_and_die(installation: Installation) -> tuple[str, list[bytes]]:
    """A training whose process died in its baseline: that stream and its records."""
    own = training_id("small")
    subject = f"evaluation/{baseline_id(own, 0)}"
    with Emitter.open(installation) as emitter:
        folder = installation.runs_dir / "small"
        open_training(emitter, "small", small(num_steps=1), folder, clock=utc_now)
        baseline = emitter.stream(subject, training_id=own)
        baseline.emit(
            EvaluationCreated(
                kind="baseline",
                training_id=own,
                generation=0,
                step=0,
                model_path="oracle",
                total_tasks=4,
            )
        )
        baseline.emit(EvaluationStarted(kind="baseline", started_at=utc_now()))
    with Emitter.open(installation) as emitter:
        read = emitter.log.local.read_streams("cua.training", [subject], {})
        return subject, [content for _, content in read]


def projected(installation: Installation) -> FoldedBatch:
    drops = read_operator_drops(installation.operator_drops_path)
    fold = Fold({}, log_id="log", drops=drops)
    return fold.take_all([parse_record(record) for record in read_all(installation)])


def test_an_evaluation_of_which_every_record_was_given_up_begins_anew(
    installation: Installation,
) -> None:
    subject, values = begin_baseline_and_die(installation)
    give_up(
        installation,
        *(Drop("record", subject, sha256(item).hexdigest(), None) for item in values),
    )
    summary = run(small(num_steps=1), installation=installation)
    assert (summary.status, summary.generation) == ("completed", 0)
    batch = projected(installation)
    assert batch.held == {}
    assert [row["status"] for row in batch.rows.inserts["baseline"].values()] == ["completed"]


def test_a_training_goes_on_in_a_new_generation_where_an_evaluation_was_given_up(
    installation: Installation,
) -> None:
    run(small(num_steps=1, eval_every=1), installation=installation)
    own = training_id("small")
    folder = installation.runs_dir / "small"
    ((manifest, _), *_) = find_states(folder)
    subject = f"evaluation/{eval_id(own, 0, 1, 0.0)}"
    with Emitter.open(installation) as emitter:
        read = emitter.log.local.read_streams("cua.training", [subject], {})
        *_, finished = (content for _, content in read)
    give_up(installation, Drop("rest", subject, sha256(finished).hexdigest(), None))
    # As killed before the result was in the state.
    update_manifest(folder, replace(manifest, evaluations=manifest.evaluations[:1]))

    summary = run(small(num_steps=2, eval_every=1), installation=installation)

    assert (summary.status, summary.steps, summary.generation) == ("completed", 2, 1)
    batch = projected(installation)
    assert batch.held == {}
    rows = batch.rows.inserts["eval"].values()
    assert sorted((row["generation"], row["step"], row["status"]) for row in rows) == [
        (0, 1, "running"),
        (1, 1, "completed"),
        (1, 2, "completed"),
    ]
    # What is known from the state is not run again.
    assert run(small(num_steps=3, eval_every=1), installation=installation).generation == 1
