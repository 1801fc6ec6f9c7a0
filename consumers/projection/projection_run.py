"""One run of a projector: when it is over, how long it waits, and its wait for the lease."""

import logging
import threading
from dataclasses import dataclass, field

from consumers.database.connection import Connection
from consumers.database.lease import LeaseTakenError, ProjectorLease
from consumers.errors import LimitExceededError, UnreachableError
from consumers.projection.activity import Activity
from consumers.projection.outage import Outage
from consumers.projection.positions import Positions, load_positions
from consumers.projection.schema import Committed
from consumers.tables import SCHEMA

logger = logging.getLogger(__name__)

LEASE_RETRY_S = 1.0
"""How often a waiting projector tries to take the lease."""


@dataclass(slots=True)
class Run:
    """One call of `run_once` or `run_forever`."""

    stop: threading.Event
    outage: Outage
    activity: Activity
    """Told what happens."""
    limit_s: float | None = None
    """How long an outage is waited out; None: for ever."""
    until: Positions | None = None
    """Where to stop; None: nowhere."""
    committed: Committed = field(default_factory=Committed)
    start: Positions | None = None
    """Where it began; None: nothing was read yet."""
    num_parked: int = 0
    """Records that it parked and that are still parked at its end."""
    is_announced: bool = False
    """Its beginning was logged."""
    error: tuple[str, float] | None = None
    """What had to be waited out last, and when; not yet stored with the lease."""

    def is_done(self) -> bool:
        """True once the target offsets are reached or a stop was requested."""
        if self.stop.is_set():
            return True
        positions = self.committed.positions
        return self.until is not None and all(
            positions.get(at, 0) >= end for at, end in self.until.items()
        )

    def check_limit(self, reason: str, *, is_lock: bool) -> None:
        """LimitExceededError (waiting for a lock or lease) or UnreachableError after `limit_s`."""
        if self.limit_s is not None and self.outage.seconds > self.limit_s:
            message = f"gave up after {self.limit_s:.0f} s: {reason}"
            raise (LimitExceededError if is_lock else UnreachableError)(message) from None


def wait_for_lease(lease: ProjectorLease, lookups: Connection, run: Run) -> bool:
    """Take the lease, from a dead holder or when it is free; False when the run is over before.

    Says for whom it waits and from whom it takes over.
    """
    last_reason = ""
    while True:
        try:
            dead = lease.acquire()
        except LeaseTakenError as error:
            reason = str(error)
        else:
            if dead is not None:
                logger.info("took the lease over from %s, silent for %.0f s", dead, dead.silent_s)
            elif last_reason:
                logger.info("the other projector has stopped; this one projects now")
            return True
        run.activity.stood_by(reason)
        if reason != last_reason:
            logger.warning("%s", reason)
            last_reason = reason
        with lookups.cursor() as cursor:
            run.committed.positions = load_positions(cursor, SCHEMA)
        if run.is_done():
            return False
        run.check_limit(reason, is_lock=True)
        if run.stop.wait(LEASE_RETRY_S):
            return False
