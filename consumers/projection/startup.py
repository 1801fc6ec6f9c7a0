"""A service that starts before what it needs: waits for the database and the log, and logs it.

A machine that boots starts `cua-project run`, PostgreSQL and Kafka in any order.
"""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from consumers.errors import UnreachableError
from consumers.projection.outage import Outage

Opened = TypeVar("Opened")


def wait_until_reachable(
    attempt: Callable[[], Opened],
    stop: threading.Event,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Opened | None:
    """What `attempt` returns once it raises UnreachableError no longer; None after `stop`.

    The error is raised at once when a server has answered and refuses: a wrong password or name
    does not mend itself.
    """
    outage = Outage(clock)
    while not stop.is_set():
        try:
            opened = attempt()
        except UnreachableError as error:
            if error.is_refusal:
                raise
            stop.wait(outage.failed(str(error)))
        else:
            outage.over()
            return opened
    return None
