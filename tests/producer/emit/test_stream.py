"""StreamWriter: what it appends, what it skips, what it refuses."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from producer.emit import Emitter, StreamWriter
from producer.errors import UsageError
from producer.log.stream_history import StreamHistory
from schemas.environment import EnvironmentStarted, EnvironmentTerminated
from schemas.event import StreamPoint
from schemas.ids import EPOCH_START
from schemas.status import IllegalTransitionError
from schemas.step import StepCollectionStarted, StepCreated, StepFailed, StepTrainingStarted
from schemas.streams import StreamPosition
from schemas.training import HeartbeatSent, Recipe, TrainingCreated, TrainingInitializing
from tests.support.emitting import CREATING, REQUESTED, new_subject
from tests.support.reading import installation_at

STARTED = EnvironmentStarted(gbox_id="x", started_at=EPOCH_START)
TERMINATED = EnvironmentTerminated(terminated_at=EPOCH_START)
OWNER = uuid4()
SUBJECT = f"environment/{OWNER}"
TRAINING, STEP = uuid4(), uuid4()
RECIPE = Recipe(
    model_name="demo",
    box_type="android",
    learning_rate=0.1,
    batch_size=4,
    group_size=4,
    groups_per_batch=1,
    max_tokens=16,
    temperature=1.0,
    kl_penalty_coef=0.0,
    num_substeps=1,
    max_turns=4,
    seed=0,
)


@pytest.fixture
def emitter(tmp_path: Path) -> Iterator[Emitter]:
    with Emitter.open(installation_at(tmp_path)) as emitter:
        yield emitter


def read(emitter: Emitter, subject: str = SUBJECT) -> StreamHistory:
    emitter.flush(10)
    return emitter.log.read_back(subject, {})


def types(emitter: Emitter, subject: str = SUBJECT) -> list[str]:
    return [event.envelope.type.removeprefix("cua.") for event in read(emitter, subject).events]


def running(emitter: Emitter) -> StreamWriter:
    stream = emitter.stream(SUBJECT)
    for payload in (REQUESTED, CREATING, STARTED):
        stream.emit(payload)
    return stream


def training_with_step(emitter: Emitter) -> StreamWriter:
    stream = emitter.stream(f"training/{TRAINING}")
    stream.emit(TrainingCreated(run_name="r", recipe=RECIPE, total_steps=1, config={}))
    stream.emit(TrainingInitializing())
    stream.emit(
        StepCreated(step_id=STEP, generation=0, step=1, batch=0, learning_rate=0.1, model_path=None)
    )
    return stream


def test_an_illegal_transition_raises_and_nothing_is_appended(emitter: Emitter) -> None:
    stream = emitter.stream(SUBJECT)
    for use in (stream.emit, stream.ensure):
        with pytest.raises(IllegalTransitionError, match="never created"):
            use(STARTED)
    stream.emit(REQUESTED)
    with pytest.raises(IllegalTransitionError, match="created twice"):
        stream.emit(REQUESTED)
    stream.emit(TERMINATED)
    with pytest.raises(IllegalTransitionError, match="cannot go from terminated to running"):
        stream.emit(STARTED)
    assert [event.envelope.point for event in read(emitter).events] == [
        StreamPoint(1, 1),
        StreamPoint(1, 2),
    ]


def test_what_no_column_takes_raises_and_nothing_is_appended(emitter: Emitter) -> None:
    """The fold would park it, and the whole training after it."""
    stream = emitter.stream(f"training/{TRAINING}")
    for name, steps in (("r" * 1_001, 1), ("r", 2**31)):
        created = TrainingCreated(run_name=name, recipe=RECIPE, total_steps=steps, config={})
        with pytest.raises(UsageError, match=r"cua.training.created: (run_name|total_steps) must"):
            stream.emit(created)
    assert read(emitter).events == []


def test_status_follows_the_events_of_each_entity(emitter: Emitter) -> None:
    stream = emitter.stream(SUBJECT)
    assert stream.status(("environment", OWNER)) is None
    stream.emit(REQUESTED)
    assert stream.status(("environment", OWNER)) == "pending"
    stream.emit(STARTED)
    assert stream.status(("environment", OWNER)) == "running"
    with pytest.raises(IllegalTransitionError):
        stream.emit(CREATING)
    assert stream.status(("environment", OWNER)) == "running"


def test_a_training_and_its_steps_have_a_status_each(emitter: Emitter) -> None:
    stream = training_with_step(emitter)
    stream.emit(StepCollectionStarted(step_id=STEP))
    assert stream.status(("training", TRAINING)) == "initializing"
    assert stream.status(("step", STEP)) == "rollout_collecting"
    assert stream.status(("step", UUID(int=1))) is None
    # Of a training's own stream they name it without being told.
    events = read(emitter, stream.subject).events
    assert {event.envelope.training_id for event in events} == {TRAINING}


def test_ensure_emits_a_status_that_was_not_reached_and_skips_those_reached_or_passed(
    emitter: Emitter,
) -> None:
    stream = emitter.stream(SUBJECT)
    for _ in range(2):
        for payload in (REQUESTED, CREATING, STARTED, TERMINATED):
            stream.ensure(payload)
    assert stream.status(("environment", OWNER)) == "terminated"
    assert len(types(emitter)) == 4


def test_ensure_emits_what_changes_no_status_every_time(emitter: Emitter) -> None:
    stream = training_with_step(emitter)
    stream.ensure(HeartbeatSent())
    stream.ensure(HeartbeatSent())
    assert types(emitter, stream.subject)[-2:] == [HeartbeatSent.TYPE.removeprefix("cua.")] * 2


def test_ensure_raises_for_a_status_that_can_no_longer_be_reached(emitter: Emitter) -> None:
    stream = training_with_step(emitter)
    stream.emit(StepFailed(step_id=STEP, error_message="no memory", ended_at=EPOCH_START))
    num_events = len(types(emitter, stream.subject))
    with pytest.raises(IllegalTransitionError, match="step cannot go from failed to training"):
        stream.ensure(
            StepTrainingStarted(
                step_id=STEP, rollout_ended_at=EPOCH_START, training_started_at=EPOCH_START
            )
        )
    stream.ensure(StepFailed(step_id=STEP, error_message="no memory", ended_at=EPOCH_START))
    # It was created, although its path does not lead from pending to failed.
    stream.ensure(
        StepCreated(step_id=STEP, generation=0, step=1, batch=0, learning_rate=0.1, model_path=None)
    )
    assert len(types(emitter, stream.subject)) == num_events


def test_a_stream_has_one_writer_while_it_is_open(emitter: Emitter) -> None:
    training = uuid4()
    stream = emitter.stream(SUBJECT, training_id=training)
    assert emitter.stream(SUBJECT) is stream
    assert emitter.stream(SUBJECT, training_id=training) is stream
    with pytest.raises(ValueError, match="open for training"):
        emitter.stream(SUBJECT, training_id=uuid4())
    with pytest.raises(ValueError, match="already being written"):
        emitter.stream(SUBJECT, StreamHistory(SUBJECT))


def test_a_closed_stream_takes_no_more_events(emitter: Emitter) -> None:
    stream = running(emitter)
    stream.close()
    stream.close()
    assert stream.status(("environment", OWNER)) is None, "its memory is free"
    for use in (stream.emit, stream.ensure):
        with pytest.raises(ValueError, match="was closed"):
            use(TERMINATED)
    with pytest.raises(ValueError, match="was closed"):
        emitter.stream(SUBJECT)
    assert len(types(emitter)) == 3


def test_a_closed_stream_is_reopened_only_with_a_history_that_has_all_of_its_events(
    emitter: Emitter,
) -> None:
    stream = emitter.stream(SUBJECT)
    stream.emit(REQUESTED)
    stale = read(emitter)
    stream.emit(STARTED)
    stream.close()
    with pytest.raises(ValueError, match=r"before this emitter appended 1/2"):
        emitter.stream(SUBJECT, stale)
    again = emitter.stream(SUBJECT, read(emitter))
    assert again is not stream
    again.emit(TERMINATED)
    stream.close()
    assert emitter.stream(SUBJECT) is again
    assert read(emitter).position.point == StreamPoint(2, 1)


def test_a_history_opens_the_next_epoch_and_names_what_it_continues(
    emitter: Emitter, tmp_path: Path
) -> None:
    running(emitter)
    history = read(emitter)
    with Emitter.open(installation_at(tmp_path)) as other:
        stream = other.stream(SUBJECT, history)
        assert stream.status(("environment", OWNER)) == "running"
        stream.ensure(STARTED)
        assert stream.point == StreamPoint(1, 3), "nothing was emitted yet"
        stream.emit(TERMINATED)
        last = read(other).events[-1].envelope
    assert last.point == stream.point == StreamPoint(2, 1)
    assert last.continues == StreamPoint(1, 3)
    assert last.source == other.source


def test_only_the_first_event_of_an_epoch_names_what_it_continues_and_the_very_first_nothing(
    emitter: Emitter,
) -> None:
    emitter.stream(SUBJECT, StreamHistory(SUBJECT)).emit(REQUESTED)
    history = read(emitter)
    emitter.stream(SUBJECT).close()
    again = emitter.stream(SUBJECT, history)
    for payload in (CREATING, STARTED, TERMINATED):
        again.emit(payload)
    assert [event.envelope.continues for event in read(emitter).events] == [
        None,
        StreamPoint(1, 1),
        None,
        None,
    ]


def test_an_epoch_follows_the_position_whatever_it_is(emitter: Emitter) -> None:
    position = StreamPosition(epoch=2, sequence=5, source="//other/1/x")
    statuses = {("environment", OWNER): "running"}
    stream = emitter.stream(SUBJECT, StreamHistory(SUBJECT, position, statuses))
    stream.emit(TERMINATED)
    emitter.flush(10)
    # The log has nothing of epochs 1 and 2, so that the record waits.
    (waiting,) = read(emitter).waiting
    assert waiting.point == StreamPoint(3, 1)
    assert waiting.continues == StreamPoint(2, 5)


def test_threads_share_a_stream_without_a_gap_or_a_duplicate(emitter: Emitter) -> None:
    emitter.stream(SUBJECT).emit(REQUESTED)

    def emit() -> None:
        for _ in range(300):
            emitter.stream(SUBJECT).emit(CREATING)

    in_threads(emit)
    history = read(emitter)
    points = [event.envelope.point.sequence for event in history.events]
    assert points == list(range(1, 1202))
    assert not history.waiting


def test_threads_that_ensure_the_same_status_emit_it_once(emitter: Emitter) -> None:
    streams = [emitter.stream(new_subject()) for _ in range(200)]

    def ensure() -> None:
        for stream in streams:
            for payload in (REQUESTED, CREATING, STARTED):
                stream.ensure(payload)

    in_threads(ensure)
    assert {len(types(emitter, stream.subject)) for stream in streams} == {3}


def in_threads(work: Callable[[], None]) -> None:
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(work) for _ in range(4)]:
            done.result()
