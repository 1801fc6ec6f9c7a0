"""Sends what ended processes left in a home's spool. Starts no training."""

import threading
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

from producer.errors import StopRequestedError, UnreachableError, UsageError
from producer.log.event_log import EventLog
from producer.log.spool import KEEP, Spool
from schemas.installation import Installation

PATIENCE_S = 10.0
"""Kafka acknowledges in milliseconds; after this long without progress it is unreachable."""
POLL_S = 1.0


class Shipped(NamedTuple):
    """Numbers of the spool's records."""

    shipped: int
    left: int
    """Records appended meanwhile, and those of streams with a record that exceeds its topic's
    limit."""


def check_ships(installation: Installation) -> None:
    """Raise UsageError for a home that ships nothing."""
    if installation.kafka_bootstrap_servers is None and installation.blobs_folder:
        message = (
            f"the log of {installation.home} is local, nothing is sent from it; set"
            " KAFKA_BOOTSTRAP_SERVERS as its trainers have it"
        )
        raise UsageError(message)


def ship_spool(installation: Installation, stop: threading.Event) -> Shipped:
    """Send everything now in the spool, then delete what was acknowledged long ago. Blocks.

    A home without a spool is left unchanged. Raises UsageError as `check_ships` does,
    UnreachableError if Kafka is unreachable or acknowledges nothing for PATIENCE_S, and
    StopRequestedError once `stop` is set.
    """
    check_ships(installation)
    if not installation.local_log_path.exists():
        return Shipped(0, 0)
    # Count before opening the log, because opening it starts sending.
    with closing(Spool(installation.local_log_path, stop)) as spool:
        waiting = {target: spool.num_unshipped(target) for target in spool.targets()}
        num_records = spool.num_unshipped("")
    log = EventLog.open(installation, stop)
    try:
        target = log.log_id()
        before = waiting.get(target, num_records)
        left = log.num_unshipped()
        while True:
            try:
                log.wait_shipped(PATIENCE_S)
                break
            except UnreachableError:
                if (now := log.num_unshipped()) >= left:
                    raise
                left = now
    finally:
        left = log.close(0.0 if installation.kafka_bootstrap_servers else PATIENCE_S)
    with closing(Spool(installation.local_log_path, stop)) as spool:
        spool.tidy(target, KEEP)
    return Shipped(max(0, before - left), left)


def keep_shipping(
    installation: Installation, stop: threading.Event, is_wanted: Callable[[], bool]
) -> None:
    """Keep sending what the home's processes leave, until `stop` is set or not `is_wanted()`."""
    check_ships(installation)
    while not installation.local_log_path.exists():
        if stop.wait(POLL_S) or not is_wanted():
            return
    try:
        log = EventLog.open(installation, stop)
    except StopRequestedError:
        return
    try:
        while is_wanted() and not stop.wait(POLL_S):
            pass
    finally:
        log.close(0.0)
