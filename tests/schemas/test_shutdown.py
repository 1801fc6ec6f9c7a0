"""Shutdown signals: the first is graceful, the second immediate."""

import io
import logging
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from schemas.shutdown import shutdown_on_signals

DEADLINE_S = 10


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_graceful_and_the_second_immediate(
    first: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    shutdown = shutdown_on_signals()
    os.kill(os.getpid(), first)
    assert shutdown.graceful.wait(DEADLINE_S)
    assert not shutdown.immediate.is_set()
    hint = "stopping gracefully; press Ctrl-C again to abort"
    assert caplog.messages == ([hint] if first == signal.SIGINT else [])
    os.kill(os.getpid(), signal.SIGINT)
    assert shutdown.immediate.wait(DEADLINE_S)


def test_the_second_signal_aborts_a_command_that_works_in_the_main_thread() -> None:
    shutdown = shutdown_on_signals(abort=True)
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    assert shutdown.immediate.wait(DEADLINE_S)


def test_a_signal_that_comes_while_the_event_is_being_read_is_handled() -> None:
    """`Event.wait` holds the event's lock for a moment; a handler that takes it waits for ever."""
    event = shutdown_on_signals().graceful
    with event._cond:  # type: ignore[attr-defined]  # what `wait` holds
        os.kill(os.getpid(), signal.SIGTERM)
    assert event.wait(DEADLINE_S)


class InterruptedWrite(io.RawIOBase):
    """Standard error whose reader sends Ctrl-C as the first line arrives."""

    def __init__(self) -> None:
        self.text = ""

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if not self.text:
            os.kill(os.getpid(), signal.SIGINT)
        self.text += bytes(data).decode()
        return len(bytes(data))


def test_a_signal_that_comes_while_a_log_line_is_written_is_told_and_obeyed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stderr = InterruptedWrite()
    text = io.TextIOWrapper(io.BufferedWriter(stderr), line_buffering=True)
    logger = logging.getLogger()
    monkeypatch.setattr(logger, "handlers", [logging.StreamHandler(text)])
    monkeypatch.setattr(logger, "level", logging.INFO)
    event = shutdown_on_signals().graceful
    logging.getLogger("test").info("a line")
    assert event.wait(DEADLINE_S)
    assert stderr.text == "a line\nstopping gracefully; press Ctrl-C again to abort\n"
