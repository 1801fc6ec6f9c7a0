import os
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import RFC_4122, UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.blobs import FolderBlobs
from producer.emit import Emitter
from producer.errors import LogBrokenError
from producer.log.local import LocalLog
from producer.log.writer import Coordinates, Record
from schemas.environment import (
    EnvironmentCreationStarted,
    EnvironmentRequested,
    EnvironmentStarted,
    EnvironmentTerminated,
)
from schemas.event import Event, Fact, StreamPoint
from schemas.ids import EPOCH_START, uuid7, uuid7_text
from schemas.installation import Installation
from schemas.status import IllegalTransitionError
from schemas.streams import StreamPosition
from schemas.wire import decode
from tests.producer.emit.reading import installation_at, read_all

AT = datetime(2026, 11, 21, 3, 14, 15, 926535, tzinfo=UTC)


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return installation_at(tmp_path)


def requested(subject: str) -> Fact:
    return Fact(
        subject, EnvironmentRequested(env_type="android_sim", box_type="android", config={})
    )


def events(installation: Installation) -> list[Event]:
    return [decode(record.value) for record in read_all(installation)]


def test_a_fact_gets_its_place_in_the_stream_and_is_acknowledged_once_it_is_on_disk(
    installation: Installation,
) -> None:
    subject, training = f"environment/{uuid4()}", uuid4()
    with Emitter.open(installation, clock=lambda: AT) as emitter:
        source = emitter.source
        emitter.stream(subject, training_id=training).emit(requested(subject).data)
        emitter.stream(subject).emit(EnvironmentCreationStarted()).wait(10)
        first, second = events(installation)
    assert first.payload == EnvironmentRequested(
        env_type="android_sim", box_type="android", config={}
    )
    assert first.envelope.point == StreamPoint(1, 1)
    assert second.envelope.point == StreamPoint(1, 2)
    assert (first.envelope.training_id, second.envelope.training_id) == (training, None)
    assert {event.envelope.source for event in (first, second)} == {source}
    assert first.envelope.time == AT
    assert first.envelope.continues is None


def test_an_illegal_transition_is_refused_and_nothing_of_it_is_appended(
    installation: Installation,
) -> None:
    subject = f"environment/{uuid4()}"
    with Emitter.open(installation) as emitter:
        with pytest.raises(IllegalTransitionError, match="never created"):
            emitter.stream(subject).emit(EnvironmentStarted(gbox_id="x", started_at=AT))
        emitter.emit(requested(subject))
        with pytest.raises(IllegalTransitionError, match="created twice"):
            emitter.emit(requested(subject))
        emitter.stream(subject).emit(EnvironmentTerminated(terminated_at=AT))
        with pytest.raises(IllegalTransitionError, match="cannot go from terminated to running"):
            emitter.stream(subject).emit(EnvironmentStarted(gbox_id="x", started_at=AT))
    assert [event.envelope.point for event in events(installation)] == [
        StreamPoint(1, 1),
        StreamPoint(1, 2),
    ]


def test_a_resumed_stream_opens_the_next_epoch_and_names_what_it_continues(
    installation: Installation,
) -> None:
    owner = uuid4()
    subject = f"environment/{owner}"
    with Emitter.open(installation) as emitter:
        position = StreamPosition(epoch=2, sequence=5, source="//other/1/x")
        emitter.resume_stream(
            subject, position=position, statuses={("environment", owner): "running"}
        )
        emitter.stream(subject).emit(EnvironmentTerminated(terminated_at=AT))
    (event,) = events(installation)
    assert event.envelope.point == StreamPoint(3, 1)
    assert event.envelope.continues == StreamPoint(2, 5)


def test_a_forgotten_stream_takes_no_more_facts(installation: Installation) -> None:
    subject = f"environment/{uuid4()}"
    with Emitter.open(installation) as emitter:
        emitter.emit(requested(subject))
        emitter.stream(subject).close()
        with pytest.raises(ValueError, match="forgotten"):
            emitter.emit(requested(subject))


def test_a_blob_is_stored_before_the_fact_that_follows_it_and_once_only(
    installation: Installation,
) -> None:
    with Emitter.open(installation) as emitter:
        ref = emitter.put_blob(b"pixels")
        assert emitter.put_blob(b"pixels") == ref
        emitter.emit(requested(f"environment/{uuid4()}")).wait(10)
        files = [path for path in (installation.home / "blobs").rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in files] == [b"pixels"]
    assert ref == "blob:sha256:" + "".join(
        files[0].relative_to(installation.home / "blobs" / "sha256").parts
    )


def test_a_closed_emitter_refuses_facts_and_closing_twice_is_once(
    installation: Installation,
) -> None:
    emitter = Emitter.open(installation)
    emitter.close()
    emitter.close()
    with pytest.raises(LogBrokenError, match="closed"):
        emitter.emit(requested(f"environment/{UUID(int=1)}"))


def test_threads_share_a_stream_without_gap_or_repetition(installation: Installation) -> None:
    subject = f"environment/{uuid4()}"
    with Emitter.open(installation) as emitter:
        emitter.emit(requested(subject))
        threads = [
            threading.Thread(
                target=lambda: [
                    emitter.stream(subject).emit(EnvironmentCreationStarted()) for _ in range(300)
                ]
            )
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [event.envelope.point.sequence for event in events(installation)] == list(range(1, 1202))


class HeldLog(LocalLog):
    """Appends only while it is let."""

    may_append = threading.Event()

    def append(self, records: Sequence[Record]) -> list[Coordinates]:
        assert self.may_append.wait(20)
        return super().append(records)


def test_a_full_buffer_makes_emit_wait_and_says_so_once_and_memory_stays_bounded(
    installation: Installation,
) -> None:
    said: list[str] = []
    log = HeldLog(installation.local_log_path)
    log.may_append.clear()
    emitter = Emitter(
        log,
        FolderBlobs(installation.home / "blobs"),
        topic_prefix="cua.",
        buffer_bytes=100_000,
        say=said.append,
    )
    num_emitted = 0

    def emit_for_ever() -> None:
        nonlocal num_emitted
        for number in range(60):
            emitter.put_blob(b"%d" % number * 5000)
            emitter.emit(requested(f"environment/{uuid4()}"))
            num_emitted += 1

    thread = threading.Thread(target=emit_for_ever)
    thread.start()
    deadline = time.monotonic() + 10
    while not said and time.monotonic() < deadline:
        time.sleep(0.01)
    # Some 5,600 or 10,600 bytes a round into 100,000: the first batch, then what the buffer holds.
    assert 5 <= num_emitted <= 45
    assert thread.is_alive()
    log.may_append.set()
    thread.join(20)
    emitter.close()
    assert num_emitted == 60
    assert len(said) == 1
    assert "emit waits" in said[0]
    assert len(events(installation)) == 60


def test_a_forked_child_may_not_use_its_parents_emitter(installation: Installation) -> None:
    with Emitter.open(installation) as emitter:
        emitter.emit(requested(f"environment/{uuid4()}")).wait(10)
        child = os.fork()
        if child == 0:
            try:
                emitter.emit(requested(f"environment/{uuid4()}"))
            except RuntimeError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert len(events(installation)) == 1


def fail_inside_a_broken_log(installation: Installation) -> None:
    with Emitter.open(installation) as emitter:
        emitter._local._connection.execute("PRAGMA max_page_count = 1")
        emitter.stream(f"environment/{uuid4()}").emit(
            EnvironmentRequested(env_type="a", box_type="b", config={"x": "x" * 500_000})
        )
        raise KeyError


def test_what_goes_wrong_inside_is_not_hidden_by_a_log_that_cannot_be_closed(
    installation: Installation,
) -> None:
    with pytest.raises(KeyError):
        fail_inside_a_broken_log(installation)


def test_event_ids_are_unique_and_ordered_by_time(installation: Installation) -> None:
    ticks = iter(AT + timedelta(milliseconds=number) for number in range(10))
    emitter = Emitter.open(installation, clock=lambda: next(ticks))
    for _ in range(9):
        emitter.emit(requested(f"environment/{uuid4()}"))
    emitter.close()
    ids = [event.envelope.id for event in events(installation)]
    assert ids == sorted(set(ids))
    assert {(one.version, one.variant) for one in ids} == {(7, RFC_4122)}
    assert ids[0].int >> 80 == 1795230855927


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=80_000)))
def test_the_quick_way_to_an_id_gives_what_the_plain_one_gives(since_1970: timedelta) -> None:
    now = EPOCH_START + since_1970
    quick, plain = UUID(uuid7_text(now)), uuid7(now)
    assert (quick.int >> 76, quick.variant) == (plain.int >> 76, plain.variant)
