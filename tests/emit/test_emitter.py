from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from producer.emit import Emitter
from producer.errors import LogBrokenError
from schemas.environment import EnvironmentCreationStarted, EnvironmentRequested, EnvironmentStarted, EnvironmentTerminated
from schemas.event import Event, Fact, StreamPoint
from schemas.installation import Installation
from schemas.status import IllegalTransitionError
from schemas.streams import StreamPosition
from schemas.wire import decode
from tests.emit.reading import installation_at, read_all

AT = datetime(2026, 11, 21, 3, 14, 15, 926535, tzinfo=UTC)


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return installation_at(tmp_path)


def requested(subject: str) -> Fact:
    return Fact(subject, EnvironmentRequested(env_type="android_sim", box_type="android", config={}))


def events(installation: Installation) -> list[Event]:
    return [decode(record.value) for record in read_all(installation)]


def test_a_fact_gets_its_place_in_the_stream_and_is_acknowledged_once_it_is_on_disk(installation: Installation) -> None:
    subject, training = f"environment/{uuid4()}", uuid4()
    with Emitter.open(installation, clock=lambda: AT) as emitter:
        source = emitter.source
        emitter.emit(Fact(subject, requested(subject).data, training))
        emitter.emit(Fact(subject, EnvironmentCreationStarted())).wait(10)
        (first, second) = events(installation)
    assert first.payload == EnvironmentRequested(env_type="android_sim", box_type="android", config={})
    assert first.envelope.point == StreamPoint(1, 1)
    assert second.envelope.point == StreamPoint(1, 2)
    assert (first.envelope.training_id, second.envelope.training_id) == (training, None)
    assert {event.envelope.source for event in (first, second)} == {source}
    assert first.envelope.time == AT
    assert first.envelope.continues is None


def test_an_illegal_transition_is_refused_and_nothing_of_it_is_appended(installation: Installation) -> None:
    subject = f"environment/{uuid4()}"
    with Emitter.open(installation) as emitter:
        with pytest.raises(IllegalTransitionError, match="never created"):
            emitter.emit(Fact(subject, EnvironmentStarted(gbox_id="x", started_at=AT)))
        emitter.emit(requested(subject))
        with pytest.raises(IllegalTransitionError, match="created twice"):
            emitter.emit(requested(subject))
        emitter.emit(Fact(subject, EnvironmentTerminated(terminated_at=AT)))
        with pytest.raises(IllegalTransitionError, match="cannot go from terminated to running"):
            emitter.emit(Fact(subject, EnvironmentStarted(gbox_id="x", started_at=AT)))
    assert [event.envelope.point for event in events(installation)] == [StreamPoint(1, 1), StreamPoint(1, 2)]


def test_a_resumed_stream_opens_the_next_epoch_and_names_what_it_continues(installation: Installation) -> None:
    owner = uuid4()
    subject = f"environment/{owner}"
    with Emitter.open(installation) as emitter:
        position = StreamPosition(epoch=2, sequence=5, source="//other/1/x")
        emitter.resume_stream(subject, position=position, statuses={("environment", owner): "running"})
        emitter.emit(Fact(subject, EnvironmentTerminated(terminated_at=AT)))
    (event,) = events(installation)
    assert event.envelope.point == StreamPoint(3, 1)
    assert event.envelope.continues == StreamPoint(2, 5)


def test_a_forgotten_stream_takes_no_more_facts(installation: Installation) -> None:
    subject = f"environment/{uuid4()}"
    with Emitter.open(installation) as emitter:
        emitter.emit(requested(subject))
        emitter.forget_stream(subject)
        with pytest.raises(ValueError, match="forgotten"):
            emitter.emit(requested(subject))


def test_a_blob_is_stored_before_the_fact_that_follows_it_and_once_only(installation: Installation) -> None:
    with Emitter.open(installation) as emitter:
        ref = emitter.put_blob(b"pixels")
        assert emitter.put_blob(b"pixels") == ref
        emitter.emit(requested(f"environment/{uuid4()}")).wait(10)
        files = [path for path in (installation.home / "blobs").rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in files] == [b"pixels"]
    assert ref == "blob:sha256:" + "".join(files[0].relative_to(installation.home / "blobs" / "sha256").parts)


def test_a_closed_emitter_refuses_facts_and_closing_twice_is_once(installation: Installation) -> None:
    emitter = Emitter.open(installation)
    emitter.close()
    emitter.close()
    with pytest.raises(LogBrokenError, match="closed"):
        emitter.emit(requested(f"environment/{UUID(int=1)}"))
