"""How long a swap waits for readers, and who they are.

Between two attempts nothing is locked: readers are only disturbed again when those who were in the
way have gone.
"""

import logging
import random
import time
from collections.abc import Callable

from consumers.database.blockers import Session, lock_holders
from consumers.database.connection import Connection
from consumers.errors import LimitExceededError
from consumers.tables import PREVIOUS_SCHEMA, SCHEMA

logger = logging.getLogger("consumers.rebuild.swap")

PAUSE_S = (0.02, 0.08)
"""Between attempts; random, so as not to beat in time with a reader."""
LONG_S = 0.2
"""A transaction older than this is waited for; younger ones are gone at the next attempt."""
HIDDEN_S = 1.0
"""Between attempts while the age of somebody's transaction is hidden from our role."""
SAY_EVERY_S = 30.0
CATCH_UP_EVERY_S = 2.0


class Patience:
    """Waits for readers, once per swap; says for whom. Not thread-safe."""

    def __init__(
        self,
        timeout_s: float | None,
        meanwhile: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`timeout_s` None: for ever. `meanwhile` is called every few seconds."""
        self._timeout_s = timeout_s
        self._meanwhile = meanwhile
        self._clock = clock
        self._began_at: float | None = None
        self._named: frozenset[int] = frozenset()
        self._said_at = 0.0

    def wait(self, connection: Connection) -> None:
        """Return when another attempt is worthwhile. LimitExceededError names who is in the way."""
        now = self._clock()
        self._began_at = now if self._began_at is None else self._began_at
        did_at = attempted_at = now
        while True:
            blockers = find_blockers(connection)
            self._say(blockers)
            now = self._clock()
            if self._timeout_s is not None and now - self._began_at >= self._timeout_s:
                raise self._give_up(blockers)
            if now - did_at >= CATCH_UP_EVERY_S:
                self._meanwhile()
                did_at = self._clock()
            time.sleep(random.uniform(*PAUSE_S))  # noqa: S311  # no secret
            if any(blocker.transaction_s > LONG_S for blocker in blockers):
                continue
            hidden = any(blocker.is_hidden for blocker in blockers)
            if not hidden or self._clock() - attempted_at >= HIDDEN_S:
                return

    def _say(self, blockers: list[Session]) -> None:
        pids = frozenset(blocker.pid for blocker in blockers)
        if not pids:
            return
        if pids <= self._named and self._clock() - self._said_at < SAY_EVERY_S:
            return
        self._named, self._said_at = self._named | pids, self._clock()
        logger.warning(
            "waiting to swap: %s; the new tables are kept up to date meanwhile%s",
            _listed(blockers),
            "" if self._timeout_s is None else f", for at most {self._timeout_s:,.0f} s",
        )

    def _give_up(self, blockers: list[Session]) -> LimitExceededError:
        message = (
            f"the tables stayed locked for {self._timeout_s:,.0f} s by"
            f" {_listed(blockers) or 'other sessions'}, and nothing was changed"
        )
        ways = (
            "end that transaction (SELECT pg_terminate_backend(pid))",
            "give a longer --swap-timeout",
        )
        return LimitExceededError(message, ways=ways)


def _listed(blockers: list[Session]) -> str:
    texts = [str(blocker) for blocker in blockers[:3]]
    more = len(blockers) - len(texts)
    return (
        ", ".join(texts)
        + (f" and {more} more" if more else "")
        + (" hold a lock on the tables" if len(blockers) > 1 else " holds a lock on the tables")
    )


def find_blockers(connection: Connection) -> list[Session]:
    """Sessions with a lock on a table that a swap must lock, longest first, hidden ones last."""
    connection.rollback()
    with connection, connection.cursor() as cursor:
        holders = lock_holders(cursor, SCHEMA, PREVIOUS_SCHEMA)
    return sorted(holders, key=lambda one: (one.is_hidden, -one.transaction_s))
