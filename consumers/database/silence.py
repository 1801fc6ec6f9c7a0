"""Says when PostgreSQL takes connections but answers nothing, and ends the wait after a limit.

A server that is stopped (SIGSTOP, a paused container, a host that hangs) still has its TCP
acknowledged by the kernel: without this, a client would wait for its answer for ever, without a
message and deaf to Ctrl-C. A thread looks at the process's sessions; when one has waited for some
seconds, it asks the server for another session. A statement that merely takes long is never taken
for silence: the server answers then.
"""

import contextlib
import logging
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    # Not for the process's boundary, which knows the watch before any command needs a driver.
    from psycopg2.extensions import connection as Connection  # noqa: N812

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 10
"""How long a new connection waits for the server."""
LOOK_EVERY_S = 1.0
ASK_AFTER_S = 2.0
"""Of waiting for one answer; most come within milliseconds."""
ANSWER_WITHIN_S = 3
"""A new session takes milliseconds; a machine that is busy, a second. With the two above, silence
is named within seven seconds."""
SAY_AGAIN_S = 60.0
ACTIVE = 1
"""libpq's PQTRANS_ACTIVE: a statement was sent, and its answer is not complete."""
STOPS = frozenset({signal.SIGINT, signal.SIGTERM})


@dataclass(slots=True)
class _Server:
    """What is known of one server, by its URL."""

    name: str
    """For messages: without a password."""
    waits_since: float | None = None
    """When the wait began that is going on."""
    asked_at: float = 0.0
    said_at: float | None = None
    """When its silence was named last; None: it answers."""


@dataclass(slots=True)
class SilenceWatch:
    """The sessions of this process. Does nothing before `start`. Thread-safe."""

    clock: Callable[[], float] = time.monotonic
    limit_s: float | None = None
    """How long silence is waited for; None: until the server answers."""
    gave_up: str | None = None
    """What the process stopped waiting for."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _sessions: "WeakKeyDictionary[Connection, str]" = field(default_factory=WeakKeyDictionary)
    _opening: dict[int, str] = field(default_factory=dict)
    """Attempts to connect, by the thread."""
    _servers: dict[str, _Server] = field(default_factory=dict)
    _is_started: bool = False
    _thread: threading.Thread | None = None

    def start(self, limit_s: float | None) -> None:
        """Watch whatever connects from now on. Again: only the limit changes."""
        self.limit_s = limit_s
        self._is_started = True

    def add(self, connection: "Connection", url: str) -> None:
        """Watch this session."""
        with self._lock:
            self._sessions[connection] = url

    def named(self) -> str | None:
        """The server that answers nothing now, for messages; None: there is none."""
        with self._lock:
            silent = [
                server.name for server in self._servers.values() if server.said_at is not None
            ]
        if not silent:
            return None
        return f"PostgreSQL at {silent[0]} takes connections but does not answer"

    @contextlib.contextmanager
    def opening(self, url: str, name: Callable[[str], str]) -> Iterator[None]:
        """While the caller connects, which has a limit of its own; before any `add` of the URL.

        `name(url)`: the server's name in messages.
        """
        with self._lock:
            self._opening[threading.get_ident()] = url
            if url not in self._servers:
                self._servers[url] = _Server(name(url))
            if self._is_started and self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, args=(_signals(),), name="silence watch", daemon=True
                )
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._opening.pop(threading.get_ident(), None)

    def _run(self, signals: int | None) -> None:
        while True:
            self.look_at_all(is_asked_to_stop=_wait(signals))

    def look_at_all(self, *, is_asked_to_stop: bool) -> None:
        """One look at every server. `is_asked_to_stop`: end the wait for a silent one."""
        with self._lock:
            servers = list(self._servers.items())
        for url, server in servers:
            self._look(url, server, is_asked_to_stop=is_asked_to_stop)

    def _look(self, url: str, server: _Server, *, is_asked_to_stop: bool) -> None:
        now = self.clock()
        waiting, opening = self._waiting(url)
        if not waiting and not opening:
            server.waits_since = None
            if server.said_at is not None and self._has_session(url):
                self._answered(server)
            return
        if server.waits_since is None:
            server.waits_since = now
        if server.said_at is not None and is_asked_to_stop:
            self._end(waiting)
            return
        if now - max(server.waits_since, server.asked_at) < ASK_AFTER_S:
            return
        if _answers(url):
            self._answered(server)
            server.asked_at = server.waits_since = self.clock()
            return
        server.asked_at = self.clock()
        silent_s = server.asked_at - server.waits_since
        what = f"PostgreSQL at {server.name} takes connections but has not answered for"
        if server.said_at is None or server.asked_at - server.said_at >= SAY_AGAIN_S:
            how_long = (
                "until it does" if self.limit_s is None else f"for up to {self.limit_s:.0f} s"
            )
            if not waiting:
                how_long = f"for up to {CONNECT_TIMEOUT_S} s"
            logger.warning("%s %.0f s; waiting %s", what, silent_s, how_long)
            server.said_at = server.asked_at
        if self.limit_s is not None and silent_s >= self.limit_s and waiting:
            self.gave_up = (
                f"{what} {silent_s:.0f} s; is it stopped or its host overloaded? Run the same"
                " command again when it answers"
            )
            self._end(waiting)

    @staticmethod
    def _answered(server: _Server) -> None:
        if server.said_at is not None:
            logger.info("PostgreSQL at %s answers again", server.name)
        server.said_at = None

    def _has_session(self, url: str) -> bool:
        with self._lock:
            return any(at == url and not one.closed for one, at in self._sessions.items())

    def _waiting(self, url: str) -> "tuple[list[Connection], bool]":
        """Sessions that wait for an answer, and whether a connection is being made."""
        with self._lock:
            sessions = [one for one, at in self._sessions.items() if at == url]
            is_opening = url in self._opening.values()
        waiting = [session for session in sessions if _is_waiting(session)]
        return waiting, is_opening

    @staticmethod
    def _end(sessions: "list[Connection]") -> None:
        """Whoever waits for their answer gets an OperationalError."""
        import psycopg2

        for session in sessions:
            with (
                contextlib.suppress(psycopg2.Error, OSError),
                socket.socket(fileno=os.dup(session.fileno())) as copy,
            ):
                copy.shutdown(socket.SHUT_RDWR)


WATCH = SilenceWatch()
"""The process's own."""


def _is_waiting(session: "Connection") -> bool:
    return not session.closed and session.get_transaction_status() == ACTIVE


def _answers(url: str) -> bool:
    """Whether the server gives a new session an answer. A refusal is one too."""
    import psycopg2

    from consumers.embedded_postgres.connection import connect

    began = time.monotonic()
    try:
        with (
            contextlib.closing(
                connect(
                    url, connect_timeout=ANSWER_WITHIN_S, application_name="cua-project silence"
                )
            ) as connection,
            connection.cursor() as cursor,
        ):
            # The server may fall silent just here.
            limit = threading.Timer(ANSWER_WITHIN_S, SilenceWatch._end, [[connection]])
            limit.start()
            try:
                cursor.execute("SELECT 1")
            finally:
                limit.cancel()
            return True
    except psycopg2.Error:
        return time.monotonic() - began < ANSWER_WITHIN_S - 0.5


def _signals() -> int | None:
    """A descriptor that becomes readable with a signal, whatever the main thread is doing."""
    if threading.current_thread() is not threading.main_thread():
        return None
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def _wait(signals: int | None) -> bool:
    """Wait for the next look; whether the process was asked to stop."""
    if signals is None:
        time.sleep(LOOK_EVERY_S)
        return False
    readable, _, _ = select.select([signals], [], [], LOOK_EVERY_S)
    return bool(readable) and not STOPS.isdisjoint(os.read(signals, 4096))
