"""Says whom a process's sessions wait for in the database, and ends sessions of ours that stopped.

A user's session is waited for, by name, as long as it takes. A process of ours that was stopped
inside a transaction would be waited for in vain: its session, which waits for its client all the
time that we wait for it, is ended. What it had not committed is done again.
"""

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self

import psycopg2

from consumers.database.blockers import Session, blockers_of_group, end_session
from consumers.database.connection import Connection, connect
from consumers.errors import UnreachableError
from consumers.tables import SCHEMA

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
FORGET_AFTER_S = 2.5
NAME_AFTER_S = 2.0
"""Shorter waits are everyday: another projector's commit, a rebuild's merge."""
SAY_AGAIN_S = 60.0
"""A wait that goes on is named again."""
STOPPED_AFTER_S = 6.0
"""Our transactions take a second or two; between two statements they do little. With the lease's
ten seconds, a stopped projector is replaced within 20 s."""
OURS = tuple(
    f"cua-project {purpose}"
    for purpose in ("run", "run, lease", f"fill {SCHEMA}", f"fill {SCHEMA}, lookups", "parked")
)
"""Sessions that may be ended: their processes try again by themselves, or can be started again."""


class _Seen(NamedTuple):
    """A session that was waited for, and when by the clock."""

    session: Session
    first: float
    last: float


class LockWatch:
    """Watches the sessions of one group, from a thread with a session of its own.

    A context manager. `reason` may be read by any thread. While the database is away it does
    nothing; clients of the database notice.
    """

    def __init__(self, url: str, group: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`group`: `connection.session_group`. `clock`: seconds."""
        self._url = url
        self._group = group
        self._clock = clock
        self._seen: dict[tuple[object, ...], _Seen] = {}
        """Every blocker by its process id, and by the state of which it must move on."""
        self._named: dict[int, float] = {}
        """When each was named last."""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lock watch", daemon=True)
        self.reason: str | None = None
        """What is waited for at the moment; None: nothing worth telling."""

    def __enter__(self) -> Self:
        """Start."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop; its session is closed a moment later."""
        self._end.set()

    def _run(self) -> None:
        connection: Connection | None = None
        while not self._end.wait(LOOK_EVERY_S):
            try:
                if connection is None:
                    connection = connect(self._url, "run, watch")
                    connection.autocommit = True
                self.look(connection)
            except (psycopg2.Error, UnreachableError):
                self._forget()
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def _forget(self) -> None:
        self._seen.clear()
        self._named.clear()
        self.reason = None

    def look(self, connection: Connection) -> None:
        """Look once."""
        with connection.cursor() as cursor:
            blockers = blockers_of_group(cursor, self._group)
        now = self._clock()
        for session in blockers:
            for state in _states(session):
                first = self._seen[state].first if state in self._seen else now
                self._seen[state] = _Seen(session, first, now)
        # Between two attempts nothing is waited for.
        self._seen = {
            state: seen for state, seen in self._seen.items() if now - seen.last <= FORGET_AFTER_S
        }
        notices = [
            seen
            for state, seen in self._seen.items()
            if len(state) == 1 and seen.last - seen.first >= NAME_AFTER_S
        ]
        for seen in notices:
            named_at = self._named.get(seen.session.pid)
            if named_at is None:
                logger.warning("waiting for %s", seen.session)
            elif now - named_at >= SAY_AGAIN_S:
                waited_s = seen.last - seen.first
                logger.warning("waiting for %.0f s for %s", waited_s, seen.session)
            else:
                continue
            self._named[seen.session.pid] = now
        if self._named and not notices:
            logger.info("the lock is free; continuing")
        pids = {seen.session.pid for seen in notices}
        self._named = {pid: at for pid, at in self._named.items() if pid in pids}
        self.reason = f"waiting for {notices[0].session}" if notices else None
        for state, seen in self._seen.items():
            if len(state) > 1 and seen.last - seen.first >= STOPPED_AFTER_S:
                self._end_stopped(connection, seen.session, seen.last - seen.first)

    def _end_stopped(self, connection: Connection, session: Session, seconds: float) -> None:
        problem = end_session(connection, session.pid)
        if problem is None:
            logger.warning(
                "ended %s: it has not moved for %.0f s, so its process is stopped or its host is"
                " gone",
                session,
                seconds,
            )
        else:
            logger.warning("cannot end %s: %s", session, problem)


def _stopped_state(session: Session) -> tuple[object, ...] | None:
    """What does not change while the session's process is stopped; None of a session that moves."""
    if session.application not in OURS or not session.waits_for_client:
        return None
    return session.pid, session.state, session.statement_began_at


def _states(session: Session) -> list[tuple[object, ...]]:
    stopped = _stopped_state(session)
    return [(session.pid,)] if stopped is None else [(session.pid,), stopped]
