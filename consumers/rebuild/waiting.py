"""How long a swap waits for readers, and who they are.

Between two attempts nothing is locked: readers are only disturbed again when those who were in the
way have gone.
"""

import logging
import random
import time
from collections.abc import Callable
from typing import NamedTuple

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


class Blocker(NamedTuple):
    """A session that holds a lock on a live table."""

    pid: int
    who: str
    since: str | None
    """When its transaction began, UTC."""
    age_s: float | None
    """None: hidden, because the session is another role's."""

    def __str__(self) -> str:
        """For messages."""
        since = f"in a transaction since {self.since} UTC" if self.since else "of another role"
        return f"process {self.pid} ({self.who}, {since})"


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
            if any((blocker.age_s or 0) > LONG_S for blocker in blockers):
                continue
            hidden = any(blocker.age_s is None for blocker in blockers)
            if not hidden or self._clock() - attempted_at >= HIDDEN_S:
                return

    def _say(self, blockers: list[Blocker]) -> None:
        pids = frozenset(blocker.pid for blocker in blockers)
        if not pids:
            return
        if pids <= self._named and self._clock() - self._said_at < SAY_EVERY_S:
            return
        self._named, self._said_at = self._named | pids, self._clock()
        logger.warning(
            "waiting to swap: %s; the new tables are kept up to date meanwhile%s",
            _listed(blockers),
            ""
            if self._timeout_s is None
            else f", for at most {self._timeout_s:,.0f} s (--swap-timeout)",
        )

    def _give_up(self, blockers: list[Blocker]) -> LimitExceededError:
        message = (
            f"the tables stayed locked for {self._timeout_s:,.0f} s by"
            f" {_listed(blockers) or 'other sessions'}; nothing was changed. End that transaction"
            " (SELECT pg_terminate_backend(pid)), or give a longer --swap-timeout"
        )
        return LimitExceededError(message)


def _listed(blockers: list[Blocker]) -> str:
    texts = [str(blocker) for blocker in blockers[:3]]
    more = len(blockers) - len(texts)
    return (
        ", ".join(texts)
        + (f" and {more} more" if more else "")
        + (" hold a lock on the tables" if len(blockers) > 1 else " holds a lock on the tables")
    )


def find_blockers(connection: Connection) -> list[Blocker]:
    """Sessions with a lock on a table that a swap must lock, longest first."""
    connection.rollback()
    with connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT session.pid, concat_ws(', ', nullif(session.application_name, ''),"
            " session.usename, CASE WHEN session.backend_type <> 'client backend' THEN"
            " session.backend_type ELSE session.state END), to_char(coalesce(session.xact_start,"
            " session.backend_start) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'), extract(epoch"
            " FROM statement_timestamp() - session.xact_start)::float8 AS age FROM pg_locks AS held"
            " JOIN pg_class ON pg_class.oid = held.relation JOIN pg_namespace ON pg_namespace.oid ="
            " relnamespace JOIN pg_stat_activity AS session USING (pid) WHERE"
            " held.granted AND held.database = (SELECT oid FROM pg_database WHERE datname ="
            " current_database()) AND nspname = ANY(%s) AND held.pid <> pg_backend_pid() ORDER BY"
            " age DESC NULLS LAST",
            ([SCHEMA, PREVIOUS_SCHEMA],),
        )
        return [Blocker(*row) for row in cursor.fetchall()]
