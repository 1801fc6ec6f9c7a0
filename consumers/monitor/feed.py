"""What changed in the tables, as Server-Sent Events: one reader of the database for all clients.

The feed keeps the last state of each training with a number that grows with every change. A client
is sent the states whose numbers it does not have yet, so one that was away or is slow misses
intermediate states and never the last one.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from uuid import uuid4

from sqlalchemy import select
from sqlalchemy.orm import Session

from consumers.monitor.api.change import TrainingChange
from consumers.monitor.table_reader import TableReader, UnreadableError
from consumers.tables import Training

logger = logging.getLogger(__name__)

POLL_S = 1.0
KEEP_ALIVE_S = 10.0
"""Between comments on a quiet stream, by which a client that went away is noticed."""
MOST_CLIENTS = 32
"""Each has a thread and a socket."""

States = Mapping[str, TrainingChange]
"""Row id -> the training's state."""


class TooManyClientsError(Exception):
    """The feed has as many clients as it takes."""


class ChangeFeed:
    """Follows the tables while it has clients.

    Thread-safe. A client that does not read delays no other. `close` ends every stream at once and
    is idempotent. While the tables cannot be read, streams stay open and are quiet.
    """

    def __init__(
        self,
        read: Callable[[], States],
        *,
        poll_s: float = POLL_S,
        most_clients: int = MOST_CLIENTS,
    ) -> None:
        """`read` returns the state of every training, or raises UnreadableError."""
        self._read = read
        self._poll_s = poll_s
        self._most_clients = most_clients
        # A state that was read earlier must not be noted after one that was read later.
        self._reading = threading.Lock()
        self._changed = threading.Condition()
        self._states: dict[str, TrainingChange] = {}
        self._events: dict[str, tuple[int, bytes]] = {}
        self._number = 0
        self._num_clients = 0
        self._is_polling = False
        self._is_closed = False
        # Of this feed: the numbers of another process say nothing here.
        self._life = uuid4().hex

    @contextmanager
    def opened(self, last_event_id: str | None) -> Iterator[Iterator[bytes]]:
        """A stream: the states after the event `last_event_id`, then each change.

        Every state where the id is None, or is of another process. It ends when the feed is closed.
        TooManyClientsError; UnreadableError.
        """
        with self._changed:
            if self._num_clients >= self._most_clients:
                raise TooManyClientsError
            self._num_clients += 1
        try:
            # Newer than anything the client has read before it asked.
            self._read_and_note()
            self._poll()
            yield self._stream(self._number_of(last_event_id))
        finally:
            with self._changed:
                self._num_clients -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """End every stream."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _number_of(self, event_id: str | None) -> int:
        life, _, number = (event_id or "").partition("-")
        return int(number) if life == self._life and number.isdecimal() else 0

    def _stream(self, seen: int) -> Iterator[bytes]:
        yield b"retry: 3000\n\n"
        while not self._is_closed:
            with self._changed:
                news = self._after(seen)
                if not news and not self._is_closed:
                    self._changed.wait(KEEP_ALIVE_S)
                    news = self._after(seen)
            if news:
                seen = news[-1][0]
            yield b"".join(event for _, event in news) or b": nothing new\n\n"

    def _after(self, seen: int) -> list[tuple[int, bytes]]:
        return sorted(event for event in self._events.values() if event[0] > seen)

    def _poll(self) -> None:
        """Start the thread that polls, unless there is one."""
        with self._changed:
            if self._is_polling or self._is_closed:
                return
            self._is_polling = True
        threading.Thread(target=self._poll_while_wanted, name="events", daemon=True).start()

    def _poll_while_wanted(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed, self._poll_s)
                if self._is_closed or not self._num_clients:
                    self._is_polling = False
                    return
            try:
                self._read_and_note()
            except UnreadableError:
                continue
            except Exception:  # the thread's boundary: logged, and the next poll goes on
                logger.exception("cannot read what changed")

    def _read_and_note(self) -> None:
        with self._reading:
            self._note(self._read())

    def _note(self, states: States) -> None:
        with self._changed:
            for gone in self._states.keys() - states.keys():
                del self._states[gone], self._events[gone]
            before = self._number
            for training, state in states.items():
                if self._states.get(training) != state:
                    self._number += 1
                    self._states[training] = state
                    self._events[training] = self._number, self._event(state)
            if self._number > before:
                self._changed.notify_all()

    def _event(self, state: TrainingChange) -> bytes:
        # The JSON has no line break, whatever a name contains.
        text = state.model_dump_json()
        return f"id: {self._life}-{self._number}\nevent: training\ndata: {text}\n\n".encode()


def table_feed(tables: TableReader) -> ChangeFeed:
    """The feed of these tables."""

    def states(session: Session) -> States:
        columns = [getattr(Training, name) for name in TrainingChange.model_fields]
        rows = session.execute(select(*columns).order_by(Training.updated_at, Training.id))
        return {str(row.id): TrainingChange.model_validate(row) for row in rows}

    return ChangeFeed(lambda: tables.read_soon(states))
