"""Shutdown signals: the first is graceful, the second immediate."""

import logging
import os
import signal
from collections.abc import Iterator

import pytest

from consumers.shutdown import shutdown_on_signals


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
    assert (shutdown.graceful.is_set(), shutdown.immediate.is_set()) == (True, False)
    hint = "stopping gracefully; press Ctrl-C again to abort"
    assert caplog.messages == ([hint] if first == signal.SIGINT else [])
    os.kill(os.getpid(), signal.SIGINT)
    assert shutdown.immediate.is_set()


def test_the_second_signal_aborts_a_command_that_works_in_the_main_thread() -> None:
    shutdown = shutdown_on_signals(abort=True)
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    assert shutdown.immediate.is_set()
