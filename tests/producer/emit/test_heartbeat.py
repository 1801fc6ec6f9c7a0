"""A training beats as long as it works, whatever the check of its ownership runs into."""

import threading
from typing import cast

import pytest

from producer.emit import StreamWriter
from producer.emit.heartbeat import heartbeat
from producer.emit.ownership import OwnershipMonitor
from producer.errors import MismatchError, StopRequestedError, UnreachableError
from schemas.base import Payload


class Script:
    """A stream that counts, and a monitor that always fails alike."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        self.has_beaten = threading.Semaphore(0)

    def emit(self, payload: Payload) -> None:
        assert payload.TYPE.endswith("heartbeat_sent")
        self.has_beaten.release()

    def check(self) -> None:
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize(
    "error", [None, UnreachableError("away"), StopRequestedError(), MismatchError("unreadable")]
)
def test_a_process_that_cannot_ask_who_owns_the_training_still_beats(
    error: Exception | None,
) -> None:
    """Asked to stop, it finishes an update, which may take longer than a takeover needs."""
    script = Script(error)
    stream, monitor = cast("StreamWriter", script), cast("OwnershipMonitor", script)
    with heartbeat(stream, monitor, lambda _: None, every_s=0.001):
        assert all(script.has_beaten.acquire(timeout=10) for _ in range(4))


def test_what_keeps_it_from_knowing_its_owner_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = Script(MismatchError("unreadable"))
    stream, monitor = cast("StreamWriter", script), cast("OwnershipMonitor", script)
    with heartbeat(stream, monitor, lambda _: None, every_s=0.001):
        assert all(script.has_beaten.acquire(timeout=10) for _ in range(5))
    assert caplog.text.count("unreadable") == 1
