import contextlib
import os
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import RFC_4122, UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.blobs import FolderBlobs
from producer.emit import Acknowledgement, Emitter
from producer.emit.group_commit import CLOSED
from producer.errors import LogBrokenError
from producer.log.event_log import EventLog
from producer.log.local import LocalLog
from producer.log.writer import Coordinates, Record
from schemas.environment import EnvironmentRequested
from schemas.event import Event, StreamPoint
from schemas.ids import EPOCH_START, uuid7, uuid7_text
from schemas.installation import Installation
from schemas.wire import decode
from tests.support.emitting import CREATING, REQUESTED, new_subject
from tests.support.eventually import eventually
from tests.support.reading import installation_at, read_all

AT = datetime(2026, 11, 21, 3, 14, 15, 926535, tzinfo=UTC)


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return installation_at(tmp_path)


def events(installation: Installation) -> list[Event]:
    return [decode(record.value) for record in read_all(installation)]


def test_an_event_is_stamped_and_acknowledged_once_it_is_on_disk(
    installation: Installation,
) -> None:
    subject, training = new_subject(), uuid4()
    with Emitter.open(installation, clock=lambda: AT) as emitter:
        source = emitter.source
        stream = emitter.stream(subject, training_id=training)
        stream.emit(REQUESTED)
        stream.emit(CREATING).wait(10)
        emitter.stream(new_subject()).emit(REQUESTED).wait(10)
        first, second, other = events(installation)
    assert first.payload == REQUESTED
    assert first.envelope.point == StreamPoint(1, 1)
    assert second.envelope.point == StreamPoint(1, 2)
    assert other.envelope.point == StreamPoint(1, 1)
    assert [event.envelope.training_id for event in (first, second, other)] == [
        training,
        training,
        None,
    ]
    assert {event.envelope.source for event in (first, second, other)} == {source}
    assert first.envelope.time == AT
    assert first.envelope.continues is None


def test_a_blob_is_stored_once_and_before_the_event_emitted_after_it(
    installation: Installation,
) -> None:
    with Emitter.open(installation) as emitter:
        ref = emitter.put_blob(b"pixels")
        assert emitter.put_blob(b"pixels") == ref
        emitter.stream(new_subject()).emit(REQUESTED).wait(10)
        files = [path for path in (installation.home / "blobs").rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in files] == [b"pixels"]
    assert ref == "blob:sha256:" + "".join(
        files[0].relative_to(installation.home / "blobs" / "sha256").parts
    )


def test_a_closed_emitter_refuses_events_and_close_is_idempotent(
    installation: Installation,
) -> None:
    emitter = Emitter.open(installation)
    emitter.close()
    emitter.close()
    with pytest.raises(LogBrokenError, match="closed"):
        emitter.stream(new_subject()).emit(REQUESTED)


class HeldLog(LocalLog):
    """Appends only while it may."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.may_append = threading.Event()

    def append(self, records: Sequence[Record]) -> list[Coordinates]:
        assert self.may_append.wait(20)
        return super().append(records)


def emitter_on(
    log: LocalLog, installation: Installation, *, buffer_bytes: int = 100_000
) -> Emitter:
    blobs = FolderBlobs(installation.home / "blobs")
    return Emitter(EventLog(log, installation), blobs, buffer_bytes=buffer_bytes)


def test_a_full_buffer_makes_emit_wait_with_one_warning_and_memory_stays_bounded(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    log = HeldLog(installation.local_log_path)
    emitter = emitter_on(log, installation)
    num_emitted = 0

    def emit_for_ever() -> None:
        nonlocal num_emitted
        for number in range(60):
            emitter.put_blob(b"%d" % number * 5000)
            emitter.stream(new_subject()).emit(REQUESTED)
            num_emitted += 1

    thread = threading.Thread(target=emit_for_ever)
    thread.start()
    eventually(lambda: caplog.messages)
    # Some 5,600 or 10,600 bytes a round into 100,000: the first batch, then what the buffer holds.
    assert 5 <= num_emitted <= 45
    assert thread.is_alive()
    log.may_append.set()
    thread.join(20)
    emitter.close()
    assert num_emitted == 60
    (message,) = caplog.messages
    assert "emit waits" in message
    assert len(events(installation)) == 60


def start_filling(emitter: Emitter) -> tuple[threading.Thread, list[Acknowledgement]]:
    """A thread that emits until LogBrokenError, and its acknowledgements so far."""
    accepted: list[Acknowledgement] = []

    def fill() -> None:
        with contextlib.suppress(LogBrokenError):
            while True:
                accepted.append(emitter.stream(new_subject()).emit(REQUESTED))

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    return thread, accepted


@pytest.mark.parametrize("is_full", [True, False])
def test_what_emit_accepted_while_another_thread_closes_is_recorded_and_the_rest_raises(
    installation: Installation, caplog: pytest.LogCaptureFixture, is_full: bool
) -> None:
    log = HeldLog(installation.local_log_path)
    emitter = emitter_on(log, installation, buffer_bytes=50_000 if is_full else 50_000_000)
    thread, accepted = start_filling(emitter)
    eventually(lambda: caplog.messages if is_full else len(accepted) > 100)
    closing = threading.Thread(target=emitter.close)
    closing.start()
    log.may_append.set()
    closing.join(20)
    thread.join(20)
    assert not thread.is_alive()
    assert all(acknowledgement.done for acknowledgement in accepted)
    assert len(events(installation)) == len(accepted)


def test_a_write_that_hangs_does_not_hang_close_nor_those_who_wait(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    log = HeldLog(installation.local_log_path)
    emitter = emitter_on(log, installation)
    thread, accepted = start_filling(emitter)
    eventually(lambda: caplog.messages)
    raised: list[BaseException] = []

    def wait_for_ever() -> None:
        try:
            accepted[0].wait()
        except LogBrokenError as error:
            raised.append(error)

    waiting = threading.Thread(target=wait_for_ever, daemon=True)
    waiting.start()
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        emitter.close(timeout_s=0.3)
    assert time.monotonic() - began < 5
    for each in (thread, waiting):
        each.join(5)
        assert not each.is_alive()
    assert [str(error) for error in raised] == [CLOSED]
    log.may_append.set()
    eventually(lambda: accepted[0].done)
    log.close()


def refuses_to_work(emitter: Emitter) -> None:
    stream = emitter.stream(new_subject())
    uses = (partial(stream.emit, REQUESTED), partial(stream.ensure, REQUESTED))
    for use in (*uses, partial(emitter.put_blob, b"pixels")):
        with pytest.raises(RuntimeError, match="after the fork"):
            use()
    os._exit(7)


def test_a_forked_child_may_not_use_its_parents_emitter(installation: Installation) -> None:
    with Emitter.open(installation) as emitter:
        emitter.stream(new_subject()).emit(REQUESTED).wait(10)
        child = os.fork()
        if child == 0:
            try:
                refuses_to_work(emitter)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert len(events(installation)) == 1


def fail_inside_a_broken_log(installation: Installation) -> None:
    with Emitter.open(installation) as emitter:
        emitter.log.local._connection.execute("PRAGMA max_page_count = 1")
        emitter.stream(new_subject()).emit(
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
        emitter.stream(new_subject()).emit(REQUESTED)
    emitter.close()
    ids = [UUID(event.envelope.id) for event in events(installation)]
    assert ids == sorted(set(ids))
    assert {(identifier.version, identifier.variant) for identifier in ids} == {(7, RFC_4122)}
    assert ids[0].int >> 80 == 1795230855927


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=80_000)))
def test_the_quick_way_to_an_id_gives_what_the_plain_one_gives(since_1970: timedelta) -> None:
    now = EPOCH_START + since_1970
    quick, plain = UUID(uuid7_text(now)), uuid7(now)
    assert (quick.int >> 76, quick.variant) == (plain.int >> 76, plain.variant)
