"""Calls that wait for a network, and end at once when the process is asked to stop."""

import threading
from collections.abc import Callable
from typing import TypeVar

from producer.errors import StopRequestedError

Result = TypeVar("Result")
POLL_S = 0.05
"""Between looks at `stop`."""


def interruptible(
    work: Callable[[], Result],
    stop: threading.Event | None,
    discard: Callable[[Result], None] = lambda _result: None,
) -> Result:
    """The result of `work`, which may block, or its error; StopRequestedError once `stop` is set.

    It then runs on in a thread that does not keep the process alive; what it returns too late is
    discarded.
    """
    if stop is None:
        return work()
    results: list[Result] = []
    errors: list[BaseException] = []
    lock, is_over, is_given_up = threading.Lock(), threading.Event(), threading.Event()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  # raised where it is waited for
            errors.append(error)
        else:
            with lock:
                results.append(result)
                if is_given_up.is_set():
                    discard(result)
        finally:
            is_over.set()

    threading.Thread(target=run, name="interruptible", daemon=True).start()
    while not is_over.wait(POLL_S):
        if stop.is_set():
            with lock:
                is_given_up.set()
                for result in results:
                    discard(result)
            raise StopRequestedError
    if errors:
        raise errors[0]
    return results[0]
