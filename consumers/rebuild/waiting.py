"""How long a swap waits for readers, and who they are.

Between two attempts nothing is locked: readers are only disturbed again when those who were in the
way have gone.
"""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from consumers.database.blockers import Session, lock_holders, prepared_lock_holders
from consumers.database.connection import Connection
from consumers.errors import LimitExceededError
from consumers.rebuild.older_snapshots import OlderSnapshots
from consumers.tables import PREVIOUS_SCHEMA, SCHEMA

logger = logging.getLogger("consumers.rebuild.swap")

PAUSE_S = (0.02, 0.08)
"""Between attempts; random, so as not to beat in time with a reader."""
LONG_S = 0.2
"""A transaction older than this is waited for; younger ones are gone at the next attempt."""
HIDDEN_S = 1.0
"""Between attempts while the age of another role's transaction is hidden from ours."""
SAY_EVERY_S = 30.0
CATCH_UP_EVERY_S = 2.0
LISTED = 3
"""Named in a message; the others are counted."""
TERMINATE = "SELECT pg_terminate_backend(pid)"


@dataclass
class Awaited:
    """What a swap waits for besides locks on our tables."""

    older: OlderSnapshots
    relations: frozenset[int] = frozenset()
    """PostgreSQL's oids of users' views and tables that the last attempt locks too."""


class _Blocker(NamedTuple):
    """Who is in the way of a swap."""

    who: str
    """Its process id, or the name of a prepared transaction: the same at every look."""
    text: str
    """Who it is and what it does."""
    since_s: float
    """Age of its transaction; 0 when that is hidden."""
    is_hidden: bool
    ends_with: str
    """The SQL that ends it."""


class _Blockers(NamedTuple):
    """Everybody who is in the way, longest first, hidden ones last."""

    locking: list[_Blocker]
    """They hold a lock on what a swap must lock."""
    older: list[_Blocker]
    """The others whose snapshot is older than the new rows."""

    def __str__(self) -> str:
        """`process 4711 (alice, psql, idle in transaction for 35 s) holds a lock ...`."""
        parts = [
            _listed(self.locking, ("holds", "hold"), "a lock on the tables"),
            _listed(
                self.older,
                ("has", "have"),
                "a snapshot from before the new tables were filled",
            ),
        ]
        return "; ".join(filter(None, parts))


class Patience:
    """Waits for readers, once per swap; names them. Not thread-safe."""

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
        self._named: frozenset[str] = frozenset()
        self._said_at = 0.0

    def wait(self, connection: Connection, awaited: Awaited) -> None:
        """Return when another attempt is worthwhile. LimitExceededError names who is in the way."""
        now = self._clock()
        self._began_at = now if self._began_at is None else self._began_at
        did_at = attempted_at = now
        while True:
            found = _find_blockers(connection, awaited)
            self._say(found)
            now = self._clock()
            if self._timeout_s is not None and now - self._began_at >= self._timeout_s:
                raise self._give_up(found)
            if now - did_at >= CATCH_UP_EVERY_S:
                self._meanwhile()
                did_at = self._clock()
            time.sleep(random.uniform(*PAUSE_S))  # noqa: S311  # no secret
            blockers = [*found.locking, *found.older]
            if any(blocker.since_s > LONG_S for blocker in blockers):
                continue
            hidden = any(blocker.is_hidden for blocker in blockers)
            if not hidden or self._clock() - attempted_at >= HIDDEN_S:
                return

    def _say(self, found: _Blockers) -> None:
        names = frozenset(blocker.who for blocker in (*found.locking, *found.older))
        if not names:
            return
        if names <= self._named and self._clock() - self._said_at < SAY_EVERY_S:
            return
        self._named, self._said_at = self._named | names, self._clock()
        logger.warning(
            "waiting to swap: %s; the new tables are kept up to date meanwhile%s",
            found,
            "" if self._timeout_s is None else f", for at most {self._timeout_s:,.0f} s",
        )

    def _give_up(self, found: _Blockers) -> LimitExceededError:
        ends = dict.fromkeys(blocker.ends_with for blocker in (*found.locking, *found.older))
        message = (
            f"the tables could not be swapped within {self._timeout_s:g} s:"
            f" {str(found) or 'other sessions held a lock on the tables'}; nothing was changed"
        )
        ways = (
            f"end that transaction ({', '.join(ends) or TERMINATE})",
            "give a longer --swap-timeout",
        )
        return LimitExceededError(message, ways=ways)


def _listed(blockers: list[_Blocker], verb: tuple[str, str], what: str) -> str:
    if not blockers:
        return ""
    named = ", ".join(blocker.text for blocker in blockers[:LISTED])
    more = f" and {len(blockers) - LISTED} more" if len(blockers) > LISTED else ""
    return f"{named}{more} {verb[len(blockers) > 1]} {what}"


def _find_blockers(connection: Connection, awaited: Awaited) -> _Blockers:
    connection.rollback()
    with connection, connection.cursor() as cursor:
        schemas = SCHEMA, PREVIOUS_SCHEMA
        locking = [
            _of_session(lock_holder)
            for lock_holder in lock_holders(cursor, *schemas, relations=awaited.relations)
        ]
        locking += [
            _Blocker(
                *(
                    prepared_lock_holder.name,
                    str(prepared_lock_holder),
                    prepared_lock_holder.since_s,
                ),
                is_hidden=False,
                ends_with=f"ROLLBACK PREPARED {prepared_lock_holder.name}",
            )
            for prepared_lock_holder in prepared_lock_holders(
                cursor, *schemas, relations=awaited.relations
            )
        ]
        names = {blocker.who for blocker in locking}
        others = [_of_session(item) for item in awaited.older.remaining(cursor)]
    return _Blockers(
        sorted(locking, key=_rank),
        sorted((other for other in others if other.who not in names), key=_rank),
    )


def _of_session(session: Session) -> _Blocker:
    return _Blocker(
        str(session.pid), str(session), session.transaction_s, session.is_hidden, TERMINATE
    )


def _rank(blocker: _Blocker) -> tuple[bool, float]:
    return blocker.is_hidden, -blocker.since_s
