"""What an operator gave up is left out by a trainer that continues, as by the tables."""

import json
import sqlite3
from dataclasses import replace
from datetime import datetime
from functools import partial
from uuid import UUID

import pytest

from consumers.fold.apply import Rejection
from consumers.fold.fold import Fold, FoldedBatch
from consumers.fold.order import Order, OrderRules, PartitionProgress
from consumers.fold.parse import parse_record
from consumers.fold.stream import Stream
from producer.emit import Emitter
from producer.errors import MismatchError
from producer.log.append_decisions import append_decisions
from producer.log.stream_history import read_streams_into
from producer.log.writer import Record
from producer.resume.open_training import open_training
from producer.resume.resume_state import find_states, update_manifest
from producer.resume.training_history import read_training_history
from producer.training.run import run, utc_now
from schemas.base import Payload
from schemas.decision import DropUndone, GapDropped, RecordDropped, RestDropped, value_hash
from schemas.environment import EnvironmentCreationStarted, EnvironmentRequested
from schemas.evaluation import EvaluationCreated, EvaluationStarted
from schemas.event import Envelope
from schemas.ids import EPOCH_START, baseline_id, eval_id, training_id, uuid7
from schemas.installation import Installation
from schemas.wire import UnknownSchemaError, encode, read_payload
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


def dropped(content: bytes) -> RecordDropped:
    return RecordDropped(value_sha256=value_hash(content), made_by="a")


def rest(content: bytes) -> RestDropped:
    return RestDropped(value_sha256=value_hash(content), made_by="a")


def gap(epoch: int, sequence: int) -> GapDropped:
    return GapDropped(from_epoch=epoch, from_sequence=sequence, made_by="a")


GARBAGE = b"garbage"
LATER = value(6).replace(b"environment.creation_started", b"environment.later_fact")
UNDONE = DropUndone(value_sha256=value_hash(GARBAGE), made_by="a")
VALUES = [value(1), value(2), GARBAGE, value(3), value(5), LATER, value(7)]
CASES: dict[str, list[Payload]] = {
    "nothing": [],
    "the unreadable record": [dropped(GARBAGE)],
    "the gap too": [dropped(GARBAGE), gap(1, 3)],
    "a gap from elsewhere": [dropped(GARBAGE), gap(1, 2)],
    "everything": [dropped(GARBAGE), gap(1, 3), dropped(LATER)],
    "everything in another order": [dropped(LATER), dropped(GARBAGE), gap(1, 3)],
    "twice": [dropped(GARBAGE), dropped(GARBAGE), rest(GARBAGE), gap(1, 3), dropped(LATER)],
    "the rest": [rest(GARBAGE)],
    "the rest after the gap": [dropped(GARBAGE), gap(1, 3), rest(LATER)],
    "the rest, taken back": [rest(GARBAGE), UNDONE],
    "the rest, taken back and dropped": [rest(GARBAGE), UNDONE, dropped(GARBAGE)],
}


def give_up(installation: Installation, subject: str, *payloads: Payload) -> None:
    """As `cua-project parked drop` does."""
    lines = [
        {
            "subject": subject,
            "trainingid": str(training_id("small")),
            "type": payload.TYPE,
            "data": payload.model_dump(),
        }
        for payload in payloads
    ]
    append_decisions(installation, map(json.dumps, lines))


def reject_unknown(_: Stream, envelope: Envelope) -> Rejection | None:
    try:
        read_payload(envelope)
    except UnknownSchemaError as error:
        return Rejection("unknown_schema", str(error))
    return None


@pytest.mark.parametrize("late", [False, True], ids=["filled never", "filled afterwards"])
@pytest.mark.parametrize("case", CASES)
def test_a_trainer_and_the_tables_agree_on_where_a_stream_is(
    case: str, late: bool, installation: Installation
) -> None:
    with Emitter.open(installation) as emitter:
        log = emitter.log.local
        log.append([Record("cua.rollouts", SUBJECT, item) for item in VALUES])
        give_up(installation, SUBJECT, *CASES[case])
        log.append([Record("cua.rollouts", SUBJECT, value(4))] * late)
        try:
            history = emitter.log.read_back(SUBJECT, {})
        except MismatchError:
            history = None
    order = Order({}, reject_unknown, OrderRules("log"), memory={})
    for record in read_all(installation):
        order.take(parse_record(record, "log"), PartitionProgress())
    stream = order.streams[SUBJECT]
    assert (stream.parked_since is not None) == (history is None)
    if history is not None:
        assert history.is_dropped == stream.dropped
        assert history.position == stream.position
        assert [item.sequence for item in history.waiting] == [
            unapplied.envelope.sequence for unapplied in stream.waiting if unapplied.envelope
        ]


def test_a_gap_that_filled_before_it_was_given_up_is_none(installation: Installation) -> None:
    with Emitter.open(installation) as emitter:
        for sequence in (1, 3, 2):
            emitter.log.local.append([Record("cua.rollouts", SUBJECT, value(sequence))])
        give_up(installation, SUBJECT, gap(1, 1))
        history = emitter.log.read_back(SUBJECT, {})
    assert [event.envelope.sequence for event in history.events] == [1, 2, 3]


def spoil(installation: Installation, subject: str, number: int) -> bytes:
    """Make a record of the stream one that no version knows; its new value."""
    connection = sqlite3.connect(installation.local_log_path)
    places = "SELECT position, value FROM records WHERE key = ? ORDER BY position"
    position, content = connection.execute(places, (subject,)).fetchall()[number]
    spoilt: bytes = content.replace(b'"type":"cua.', b'"type":"later.')
    with connection:
        connection.execute("UPDATE records SET value = ? WHERE position = ?", (spoilt, position))
    connection.close()
    return spoilt


def test_a_training_whose_rest_was_given_up_is_not_continued(installation: Installation) -> None:
    run(small(num_steps=1), installation=installation)
    own = training_id("small")
    with Emitter.open(installation) as emitter:
        log = emitter.log.local
        subject = f"training/{own}"
        records = [content for _, content in log.read_streams("cua.training", [subject], {})]
        give_up(installation, subject, rest(records[-1]))
        history = read_training_history(emitter.log, own, start={}, since={})
        assert history.own.is_dropped
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
        give_up(installation, rollout, rest(records[-1]))
        history = read_training_history(emitter.log, own, start={}, since={})
        stream = history.of(rollout)
        assert stream.is_dropped
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
        give_up(installation, subject, *map(dropped, given_up))
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

        give_up(installation, subject, rest(content))
        assert read().of(subject).is_dropped
        assert emitter.log.read_back(subject, {}).is_dropped


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
    fold = Fold({}, log_id="log", memory={})
    return fold.take_all([parse_record(record) for record in read_all(installation)])


def test_an_evaluation_of_which_every_record_was_given_up_begins_anew(
    installation: Installation,
) -> None:
    subject, values = begin_baseline_and_die(installation)
    # What follows a creation that is given up cannot be applied either.
    give_up(installation, subject, dropped(spoil(installation, subject, 0)), dropped(values[1]))
    summary = run(small(num_steps=1), installation=installation)
    assert (summary.status, summary.generation) == ("completed", 0)
    batch = projected(installation)
    assert batch.unapplied == {}
    assert [row["status"] for row in batch.rows.inserts["baseline"].values()] == ["completed"]


def test_a_training_goes_on_in_a_new_generation_where_an_evaluation_was_given_up(
    installation: Installation,
) -> None:
    run(small(num_steps=1, eval_every=1), installation=installation)
    own = training_id("small")
    folder = installation.runs_dir / "small"
    ((manifest, _), *_) = find_states(folder)
    subject = f"evaluation/{eval_id(own, 0, 1, 0.0)}"
    give_up(installation, subject, rest(spoil(installation, subject, -1)))
    # As killed before the result was in the state.
    update_manifest(folder, replace(manifest, evaluations=manifest.evaluations[:1]))

    summary = run(small(num_steps=2, eval_every=1), installation=installation)

    assert (summary.status, summary.steps, summary.generation) == ("completed", 2, 1)
    batch = projected(installation)
    assert [unapplied.state for unapplied in batch.unapplied.values()] == ["refused"]
    rows = batch.rows.inserts["eval"].values()
    assert sorted((row["generation"], row["step"], row["status"]) for row in rows) == [
        (0, 1, "running"),
        (1, 1, "completed"),
        (1, 2, "completed"),
    ]
    # What is known from the state is not run again.
    assert run(small(num_steps=3, eval_every=1), installation=installation).generation == 1
