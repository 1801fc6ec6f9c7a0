"""A process that is asked to stop ends at once, also while Kafka is there and silent."""

import gc
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from producer.emit import Emitter
from producer.errors import StopRequestedError
from producer.log.event_log import EventLog
from producer.log.kafka_contact import interruptible
from tests.support.emitting import CREATING, REQUESTED, new_subject
from tests.support.eventually import eventually
from tests.support.kafka import KafkaService
from tests.support.reading import installation_on

PROMPT_S = 5.0
"""What does not hear a stop waits for 30 s at least; closing takes one by itself."""
SILENT_S = 1.0
"""Until the request."""


def shipper_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "cua-shipper"]


@contextmanager
def stopped(service: KafkaService) -> Iterator[None]:
    """Kafka is as a host that hangs: connections are taken, nothing is answered."""
    service.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        service.send_signal(signal.SIGCONT)
        gc.collect()


@contextmanager
def ends_promptly_after(stop: threading.Event) -> Iterator[None]:
    """Set `stop` after a while; the block must end soon after that and not before."""
    timer = threading.Timer(SILENT_S, stop.set)
    began = time.monotonic()
    timer.start()
    try:
        yield
    finally:
        took_s = time.monotonic() - began
        timer.cancel()
    assert SILENT_S <= took_s < SILENT_S + PROMPT_S


def test_a_call_gives_its_result_or_its_error() -> None:
    for stop in (None, threading.Event()):
        assert interruptible(lambda: 7, stop) == 7
        with pytest.raises(ZeroDivisionError):
            interruptible(lambda: 1 // 0, stop)


def test_what_is_returned_after_a_stop_is_discarded() -> None:
    stop, may_end, discarded = threading.Event(), threading.Event(), threading.Event()

    def work() -> int:
        may_end.wait(10)
        return 3

    def discard(result: int) -> None:
        assert result == 3
        discarded.set()

    stop.set()
    with pytest.raises(StopRequestedError):
        interruptible(work, stop, discard)
    assert not discarded.is_set()
    may_end.set()
    assert discarded.wait(10)


@pytest.mark.services
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_wait_for_a_silent_kafka_outlives_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connecting, reading, waiting for what was sent, closing; and nothing of it is lost.

    What closing drops raises nothing later, when its client is collected.
    """
    subject = new_subject()
    unraisable: list[BaseException | None] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda item: unraisable.append(item.exc_value))
    with KafkaService() as service:
        first, stop = threading.Event(), threading.Event()
        homes = [installation_on(service.bootstrap_servers, tmp_path / name) for name in "ab"]
        connected = Emitter.open(homes[0], stop=stop)
        connected.log.connect(30)
        connected.stream(subject).emit(REQUESTED)
        connected.flush(10)
        connected.log.wait_shipped(30)
        unconnected = EventLog.open(homes[1], first)
        with stopped(service):
            with ends_promptly_after(first), pytest.raises(StopRequestedError):
                unconnected.connect(60)
            began = time.monotonic()
            unconnected.close(30)
            assert time.monotonic() - began < PROMPT_S
            connected.stream(subject).emit(CREATING)
            connected.flush(10)
            with ends_promptly_after(stop), pytest.raises(StopRequestedError):
                connected.log.read_back(subject, {})
            stop.clear()
            with ends_promptly_after(stop), pytest.raises(StopRequestedError):
                connected.log.wait_shipped(60)
            began = time.monotonic()
            assert connected.close() == 1
            assert time.monotonic() - began < PROMPT_S
            # Kafka's client would give up the record after 30 s.
            eventually(lambda: not shipper_threads(), 15)
            del connected
            gc.collect()
            assert [item for item in unraisable if not isinstance(item, ResourceWarning)] == []
        with Emitter.open(homes[0]) as later:
            later.log.wait_shipped(60)
            assert later.log.read_back(subject, {}).position.sequence == 2


@pytest.mark.services
def test_a_kafka_that_answers_gets_everything_before_a_stopped_process_ends(
    tmp_path: Path, kafka: KafkaService
) -> None:
    stop = threading.Event()
    home = installation_on(kafka.bootstrap_servers, tmp_path, f"s{uuid4().hex}.")
    emitter = Emitter.open(home, stop=stop)
    emitter.log.connect(30)
    for _ in range(3_000):
        emitter.stream(new_subject()).emit(REQUESTED)
    stop.set()
    assert emitter.close() == 0
