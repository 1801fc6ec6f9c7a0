"""Sending what the spool still holds when a process ends, and for how long that is waited for."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

from producer.log.shipper import Shipper

logger = logging.getLogger(__name__)

POLL_S = 0.02
"""Between reads of the shipping cursor, which another process may move."""
SAY_AFTER_S = 1.0
"""A longer wait is logged with its reason."""
STUCK_S = 0.7
"""Kafka acknowledges in milliseconds; one that does not for so long does not answer now."""


def ship_remaining(
    shipper: Shipper,
    path: Path,
    timeout_s: float,
    *,
    num_unshipped: Callable[[], int],
    progress: Callable[[], object],
    num_held: Callable[[], int],
    is_stopping: Callable[[], bool],
) -> int:
    """Wait until everything is sent; how many records are left after `timeout_s`.

    A process that was asked to stop waits only while something is sent or acknowledged: while
    `progress()` changes. `num_held`: those that can never be sent now. Logs what stays, and where.
    """
    began = progressed = time.monotonic()
    has_said = False
    before: object = None
    num_left = num_unshipped()
    shipper.notify()
    while num_left:
        now = time.monotonic()
        if (reached := (num_left, progress())) != before:
            before, progressed = reached, now
        is_stuck = is_stopping() and now - progressed > STUCK_S
        is_over = now - began > timeout_s or is_stuck or not shipper.is_alive
        if is_over or num_left == num_held():
            logger.warning(
                "%d events are not sent yet; %s keeps them. `cua-project ship` sends them, and so"
                " does `cua-project up` or the next `cua-train` of this home",
                *(num_left, path),
            )
            break
        if not has_said and now - began > SAY_AFTER_S:
            has_said = True
            logger.info("sending the last %d events; up to %.0f s", num_left, timeout_s)
        time.sleep(POLL_S)
        num_left = num_unshipped()
    return num_left
