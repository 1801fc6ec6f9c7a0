"""The tables as requests read them: read-only, and found again after the database was restarted."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError, ProgrammingError
from sqlalchemy.orm import Session

from consumers.database.revision import Age, look
from consumers.database.shape import describe, missing
from consumers.errors import CuaProjectError, UnreachableError

Read = TypeVar("Read")
CONNECT_WITHIN_S = 2.0
"""How long a program waits until the database takes its query; a restart may take longer."""


class UnreadableError(Exception):
    """The tables cannot be read now: `title` says what is wrong, the text why or what to do."""

    def __init__(self, title: str, text: str) -> None:
        super().__init__(text)
        self.title = title


class TableReader:
    """Reads in sessions of their own. Thread-safe."""

    def __init__(self, open_engine: Callable[[], Engine]) -> None:
        """`open_engine` finds the database; called again after the connection is lost."""
        self._open_engine = open_engine
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        self._connecting: Future[None] | None = None

    def read_soon(self, query: Callable[[Session], Read]) -> Read:
        """As `read`, but UnreadableError if the database takes no query within CONNECT_WITHIN_S.

        Connecting goes on for whoever asks next; it may be a start of the embedded database.
        """
        try:
            self._begin_to_connect().result(CONNECT_WITHIN_S)
        except TimeoutError:
            message = f"PostgreSQL has not answered within {CONNECT_WITHIN_S:.0f} s; ask again"
            raise _unreachable(UnreachableError(message)) from None
        except UnreachableError as error:
            raise _unreachable(error) from None
        return self.read(query)

    def _begin_to_connect(self) -> "Future[None]":
        """One attempt for all who wait; it raises UnreachableError."""
        with self._lock:
            if self._connecting is None or self._connecting.done():
                self._connecting = Future()
                # Not of an executor, which a process waits for at its end.
                threading.Thread(
                    target=self._connect, args=(self._connecting,), name="connecting", daemon=True
                ).start()
            return self._connecting

    def _connect(self, connecting: "Future[None]") -> None:
        try:
            self._read_with_one_retry(lambda session: session.connection())
        except UnreachableError as error:
            connecting.set_exception(error)
        except BaseException:  # noqa: BLE001  # the thread's boundary: `read` meets it again, and tells it
            connecting.set_result(None)
        else:
            connecting.set_result(None)

    def read(self, query: Callable[[Session], Read]) -> Read:
        """What `query` returns, asked again once after a lost connection. UnreadableError."""
        try:
            return self._read_with_one_retry(query)
        except UnreachableError as error:
            raise _unreachable(error) from None
        except ProgrammingError:
            raise self._why() from None

    def _why(self) -> UnreadableError:
        """Why the tables cannot be read: none yet, of another version, or not whole."""
        if self._engine is not None:
            url = self._engine.url.render_as_string(hide_password=False)
            try:
                revision = look(url)
                if revision.age is not Age.EMPTY:
                    revision.require_current()
                    return UnreadableError("The tables cannot be read", describe(missing(url)))
            except UnreachableError as error:
                return _unreachable(error)
            except CuaProjectError as error:
                return UnreadableError("The tables cannot be read", str(error))
        return UnreadableError(
            "There are no tables yet",
            "`cua-project up` or `cua-project run` creates them and fills them from the log.",
        )

    def _read_with_one_retry(self, query: Callable[[Session], Read]) -> Read:
        try:
            return self._read(query)
        except OperationalError:
            # The server has stopped. Finding the database again restarts an embedded one.
            if self._engine is not None:
                self._engine.dispose()
            self._engine = None
        try:
            return self._read(query)
        except OperationalError as error:
            first = str(error.orig).strip().splitlines()[0]
            message = f"PostgreSQL does not answer: {first}"
            raise UnreachableError(message) from None

    def _read(self, query: Callable[[Session], Read]) -> Read:
        engine = self._engine
        if engine is None:
            engine = self._engine = self._open_engine()
        with Session(engine.execution_options(postgresql_readonly=True)) as session:
            return query(session)


def _unreachable(error: UnreachableError) -> UnreadableError:
    return UnreadableError("The database is unreachable", str(error))
