"""Ships the local log's records to another log, in order, one shipper per machine at a time.

Owns the thread, the lock that makes it the only one, retries and what a person is told of them.
Knows no Kafka: the target is a `Target` that it gets from `connect`.
"""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from producer.errors import CuaTrainError, LogBrokenError, UnreachableError
from producer.log.lock import FileLock
from producer.log.spool import PRUNE_ROWS, Spool
from producer.log.writer import Coordinates, Record

CHUNK_BYTES = 4 << 20
CHUNK_RECORDS = 5000
"""Bounds of what lies in memory and in flight, however long the other log was away."""
IDLE_S = 0.05
"""Between looks for records of other processes; our own are announced."""
LOCK_S = 0.2
"""Between tries to become the shipper."""
FIRST_RETRY_S, LAST_RETRY_S = 0.2, 3.0
PRUNE_EVERY_S = 600.0
KEEP = timedelta(days=7)
GATHER_RECORDS, GATHER_S = 500, 0.02
"""After a smaller chunk it waits that long for company: at 1,000 events a second, one request in
place of ten."""


class Target(Protocol):
    """The part of a LogWriter that shipping needs."""

    @property
    def log_id(self) -> str:
        """What the cursor is kept under."""
        ...

    def append(self, records: Sequence[Record]) -> list[Coordinates]:
        """Returns once all are acknowledged; UnreachableError: none is promised."""
        ...

    def close(self) -> None:
        """An append under way fails."""
        ...


class Shipper:
    """A thread that ships whenever it holds the lock.

    Thread-safe; nothing here waits for the network but `wait`.

    An unreachable target is tried again for ever, in order, from the first record without
    acknowledgement; that is said once when it goes and once when it is back. A record may reach the
    target twice, never not at all and never before its predecessor in the stream. `stop` twice is
    once; what is left stays in the file for the next process.
    """

    def __init__(
        self,
        path: Path,
        connect: Callable[[], Target],
        *,
        say: Callable[[str], None],
        before: Callable[[list[Record]], None] | None = None,
        keep: timedelta | None = KEEP,
    ) -> None:
        """Start. `path`: the local log.

        `before`: called with records about to be shipped, to upload their blobs; UnreachableError
        too.

        `keep`: how long shipped records stay in the file; None: for ever.
        """
        self._path = path
        self._connect = connect
        self._say = say
        self._before = before
        self._keep = keep
        self._lock = FileLock(path.with_name("shipper.lock"))
        self._poke = threading.Event()
        self._stopping = threading.Event()
        self._target: Target | None = None
        self._target_id: str | None = None
        self._problem: CuaTrainError | None = None
        self._retry_s = FIRST_RETRY_S
        self._thread = threading.Thread(target=self._run, name="cua-shipper", daemon=True)
        self._thread.start()

    @property
    def problem(self) -> CuaTrainError | None:
        """Why nothing is shipped at present; None when all is well, or another process ships."""
        return self._problem

    @property
    def target_id(self) -> str | None:
        """Id of the log that this process ships to; None before its first contact."""
        return self._target_id

    @property
    def is_alive(self) -> bool:
        """Whether the thread goes on trying."""
        return self._thread.is_alive()

    def poke(self) -> None:
        """There is something new."""
        self._poke.set()

    def stop(self, timeout_s: float) -> bool:
        """End after the chunk under way; whether the thread has ended."""
        self._stopping.set()
        self._poke.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive() and self._target is not None:
            # It waits for acknowledgements that do not come.
            self._target.close()
            self._thread.join(1.0)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                if not self._lock.try_take():
                    # Another process ships our records too.
                    self._stopping.wait(LOCK_S)
                    continue
                try:
                    self._ship()
                except LogBrokenError:
                    raise
                except Exception as error:  # noqa: BLE001  # the thread's boundary: whatever the target does, shipping goes on
                    self._report(error if isinstance(error, CuaTrainError) else _unexpected(error))
                    self._drop_target()
                    # Not cut short by news: those come a hundred times a second.
                    self._stopping.wait(self._retry_s)
                    self._retry_s = min(self._retry_s * 2, LAST_RETRY_S)
        except CuaTrainError as error:
            # The spool itself cannot be used any more; the emitter finds that out by its own
            # commits.
            self._report(error)
        finally:
            self._drop_target()
            self._lock.release()

    def _ship(self) -> None:
        """Ship until stopped or the target is away."""
        target = self._target = self._connect()
        self._target_id = target.log_id
        spool = Spool(self._path)
        try:
            position = spool.cursor(target.log_id)
            pruned_at = float("-inf")
            while not self._stopping.is_set():
                self._poke.clear()
                chunk = spool.read(position, CHUNK_BYTES, CHUNK_RECORDS)
                if chunk.records:
                    if self._before is not None:
                        self._before(chunk.records)
                    target.append(chunk.records)
                    position = chunk.next_position
                    spool.move(target.log_id, position)
                self._recover()
                if not chunk.records:
                    if time.monotonic() - pruned_at > PRUNE_EVERY_S:
                        self._prune(spool, target.log_id)
                        pruned_at = time.monotonic()
                    self._poke.wait(IDLE_S)
                elif len(chunk.records) < GATHER_RECORDS:
                    self._stopping.wait(GATHER_S)
        finally:
            spool.close()

    def _prune(self, spool: Spool, target: str) -> None:
        if self._keep is None:
            return
        while (
            not self._stopping.is_set()
            and spool.prune(target, self._keep, datetime.now(UTC)) == PRUNE_ROWS
        ):
            self._stopping.wait(0.01)

    def _report(self, error: CuaTrainError) -> None:
        is_new = self._problem is None
        self._problem = error
        if is_new:
            lost = (
                ""
                if isinstance(error, LogBrokenError)
                else " Nothing is lost: events are kept on this disk and sent when it is back."
            )
            self._say(f"{error}{lost}")

    def _recover(self) -> None:
        self._retry_s = FIRST_RETRY_S
        if self._problem is not None:
            self._problem = None
            self._say("the log is back; what was kept is being sent")

    def _drop_target(self) -> None:
        target, self._target = self._target, None
        if target is not None:
            target.close()


def _unexpected(error: Exception) -> UnreachableError:
    return UnreachableError(
        f"shipping to the log failed: {type(error).__name__}: {error}; it is tried again"
    )
