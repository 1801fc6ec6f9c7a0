"""Contact with Kafka: waits with a time limit and a single warning, and stops when asked to.

Imports no kafka, which takes a tenth of a second and which most installations do not use.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from producer.errors import StopRequestedError, UnreachableError
from schemas.installation import Installation

if TYPE_CHECKING:
    from producer.log.kafka import KafkaLog

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
POLL_S = 0.05
"""Interval between checks for a request to stop."""
RETRY_S = 1.0
WARN_AFTER_S = 5.0
WARN_AGAIN_S = 60.0


class LogClosedError(UnreachableError):
    """The connection was closed, so waiting for Kafka is useless. Exit code 5."""


def interruptible(
    work: Callable[[], Result],
    stop: threading.Event | None,
    discard: Callable[[Result], object] = lambda _result: None,
) -> Result:
    """Run `work`, which may block, and return its result; raise StopRequestedError on `stop`.

    After that, `work` continues on a thread that does not keep the process alive, and its late
    result is passed to `discard`.
    """
    if stop is None:
        return work()
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  # raised where it is waited for
            future.set_exception(error)

    threading.Thread(target=run, name="interruptible", daemon=True).start()
    while not wait([future], POLL_S).done:
        if stop.is_set():
            future.add_done_callback(lambda late: late.exception() or discard(late.result()))
            raise StopRequestedError
    return future.result()


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?")) else f"{text}."


def reach(
    attempt: Callable[[], Result],
    timeout_s: float,
    stop: threading.Event | None,
    is_reported: Callable[[], bool] = lambda: False,
) -> Result:
    """Repeat `attempt` for up to `timeout_s` while it raises UnreachableError. Returns its result.

    One warning says what is being waited for and, unless `is_reported`, why. LogClosedError ends
    the wait, and StopRequestedError is raised once `stop` is set.
    """
    deadline = time.monotonic() + timeout_s
    has_warned = False
    while True:
        try:
            return attempt()
        except LogClosedError:
            raise
        except UnreachableError as error:
            if time.monotonic() + RETRY_S > deadline:
                raise
            if not has_warned:
                has_warned = True
                reason = "" if is_reported() else f"{_sentence(str(error))} "
                limit = "" if math.isinf(timeout_s) else f" up to {timeout_s:.0f} s"
                logger.warning("%sWaiting%s for Kafka", reason, limit)
        if (stop or threading.Event()).wait(RETRY_S):
            raise StopRequestedError


def open_kafka(
    installation: Installation, timeout_s: float, stop: threading.Event | None = None
) -> "KafkaLog":
    """Connect to Kafka's log, creating its topics. Writes nothing on this machine.

    Once `stop` is set, reading raises StopRequestedError too. Raises as `reach` does.
    """
    from producer.log.kafka import KafkaLog

    make = partial(KafkaLog, installation, stop=stop)
    return reach(lambda: interruptible(make, stop, KafkaLog.close), timeout_s, stop)


def wait_for_kafka(
    installation: Installation, timeout_s: float, stop: threading.Event | None = None
) -> None:
    """Return once Kafka has responded. Raises as `open_kafka` does."""
    open_kafka(installation, timeout_s, stop).close()


class SlowAnswers:
    """Reports slow answers of one server.

    Thread-safe: for concurrent waits, it logs once a minute.
    """

    def __init__(self, server: str) -> None:
        """`server` is its name in messages."""
        self._server = server
        self._lock = threading.Lock()
        self._warned_at = -WARN_AGAIN_S

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Warn when the block takes longer than WARN_AFTER_S."""
        timer = threading.Timer(WARN_AFTER_S, self._warn)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _warn(self) -> None:
        with self._lock:
            if time.monotonic() - self._warned_at < WARN_AGAIN_S:
                return
            self._warned_at = time.monotonic()
        logger.warning(
            "waiting for %s: it takes connections but has not answered for %.0f s",
            *(self._server, WARN_AFTER_S),
        )
