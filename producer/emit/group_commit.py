"""The emitter's background thread: makes buffered records durable, blobs first, one commit per batch.

Owns the bounded buffer between the caller's thread and the disk. Knows no streams and no payloads.
"""

import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from producer.errors import CuaTrainError, LogBrokenError
from producer.log.writer import Record

logger = logging.getLogger(__name__)

BATCH_BYTES = 8 << 20
"""Of one commit at most, so that acknowledgements keep coming while a full buffer is worked off."""
LINGER_S = 0.010
"""How long the first record of a batch waits for company: at 1,000 events a second ten share one
sync. Nobody who waits for an acknowledgement waits for this; asking ends it."""
KNOWN_BLOBS = 65536
"""Refs remembered as written, about 10 MB; beyond that a look at the store decides."""
CLOSED = "the emitter was closed; nothing more is recorded through it"


class Blob(NamedTuple):
    """A payload to be stored before any record that follows it."""

    ref: str
    content: bytes


class GroupCommitBuffer:
    """Bounded buffer and the thread that empties it. Thread-safe.

    `put` waits for no I/O. `wait_for_room` blocks while the buffer is full, with one warning. After
    a failure nothing more is written: `wait_for_room`, `wait` and `flush` raise the same
    LogBrokenError for everything that was not acknowledged before. `stop` is idempotent.
    """

    def __init__(
        self,
        append: Callable[[Sequence[Record]], object],
        put_blobs: Callable[[Mapping[str, bytes]], None],
        *,
        buffer_bytes: int,
        on_commit: Callable[[], None],
        linger_s: float = LINGER_S,
    ) -> None:
        """`append` and `put_blobs` return once everything is durable. `on_commit`: after each."""
        self._append = append
        self._put_blobs = put_blobs
        self._limit = buffer_bytes
        self._on_commit = on_commit
        self._linger_s = linger_s
        self.lock = threading.Lock()
        """Guards everything here. A StreamWriter holds it while it stamps an event, so that sequence
        numbers and queue order agree."""
        self._work = threading.Condition(self.lock)
        self._progress = threading.Condition(self.lock)
        self._urgent = threading.Event()
        self._queue: deque[tuple[Record | Blob, int]] = deque()
        self._buffered = 0
        self._accepted = 0
        self._committed = 0
        self._is_idle = False
        self._is_stopping = False
        self._has_warned = False
        self._failure: CuaTrainError | None = None
        self._known_blobs: OrderedDict[str, None] = OrderedDict()
        self._thread = threading.Thread(target=self._run, name="cua-emitter", daemon=True)
        self._thread.start()

    def wait_for_room(self) -> None:
        """With the lock held: return once the buffer has room.

        LogBrokenError after a failure or `stop`.
        """
        if self._failure is not None:
            raise self._failure
        if self._is_stopping:
            raise LogBrokenError(CLOSED)
        if self._buffered < self._limit:
            return
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "the disk is slower than the events come: %d MiB are waiting; emit now waits too",
                self._buffered >> 20,
            )
        self._urgent.set()
        self._progress.wait_for(lambda: self._buffered < self._limit or self._failure is not None)
        if self._failure is not None:
            raise self._failure

    def put(self, item: Record | Blob, size: int) -> int:
        """With the lock held and room there: hand over; its number, for `wait`."""
        self._queue.append((item, size))
        self._buffered += size
        self._accepted += 1
        if self._is_idle:
            self._is_idle = False
            self._work.notify()
        return self._accepted

    def knows_blob(self, ref: str) -> bool:
        """With the lock held: whether this blob was put before (it is stored, or before us in the queue); remembers it."""
        if ref in self._known_blobs:
            self._known_blobs.move_to_end(ref)
            return True
        self._known_blobs[ref] = None
        if len(self._known_blobs) > KNOWN_BLOBS:
            self._known_blobs.popitem(last=False)
        return False

    def is_done(self, number: int) -> bool:
        """Whether that item is durable."""
        return self._committed >= number

    def wait(self, number: int, timeout_s: float | None) -> None:
        """Return once that item is durable.

        LogBrokenError when it will never be, TimeoutError after `timeout_s`.
        """
        if self._committed >= number:
            return
        with self.lock:
            self._urgent.set()
            self._progress.wait_for(
                lambda: self._committed >= number or self._failure is not None, timeout_s
            )
            if self._committed >= number:
                return
            if self._failure is not None:
                raise self._failure
        message = f"the log did not acknowledge within {timeout_s} s; it is still trying"
        raise TimeoutError(message)

    def flush(self, timeout_s: float | None) -> None:
        """Return once everything that was put before is durable; raises as `wait`."""
        with self.lock:
            number = self._accepted
            if self._failure is not None:
                raise self._failure
        self.wait(number, timeout_s)

    def stop(self, timeout_s: float | None) -> bool:
        """Write what is there and end the thread; whether it ended in time. Further puts raise."""
        with self.lock:
            self._is_stopping = True
            self._urgent.set()
            self._work.notify()
        self._thread.join(timeout_s)
        with self.lock:
            if self._failure is None:
                self._failure = LogBrokenError(CLOSED)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (batch := self._next_batch()) is not None:
            try:
                self._commit([item for item, _ in batch])
            except Exception as error:  # noqa: BLE001  # the thread's boundary: whatever went wrong, acknowledgements must raise it
                failure = (
                    error
                    if isinstance(error, CuaTrainError)
                    else LogBrokenError(f"the log broke: {type(error).__name__}: {error}")
                )
                self._end_with(failure)
                return
            with self.lock:
                self._committed += len(batch)
                self._buffered -= sum(size for _, size in batch)
                self._progress.notify_all()
            self._on_commit()

    def _next_batch(self) -> list[tuple[Record | Blob, int]] | None:
        """Wait for something to write; None once stopping and empty."""
        with self.lock:
            while not self._queue:
                if self._is_stopping:
                    return None
                self._is_idle = True
                self._work.wait()
            self._is_idle = False
        self._urgent.wait(self._linger_s)
        batch: list[tuple[Record | Blob, int]] = []
        size = 0
        with self.lock:
            while self._queue and size < BATCH_BYTES:
                entry = self._queue.popleft()
                batch.append(entry)
                size += entry[1]
            if not self._queue and not self._is_stopping:
                self._urgent.clear()
        return batch

    def _commit(self, items: list[Record | Blob]) -> None:
        blobs = {item.ref: item.content for item in items if isinstance(item, Blob)}
        if blobs:
            try:
                self._put_blobs(blobs)
            except OSError as error:
                message = (
                    f"a screenshot or other payload cannot be stored: {error}. Make room there and"
                    " run the same command again"
                )
                raise LogBrokenError(message) from error
        self._append([item for item in items if isinstance(item, Record)])

    def _end_with(self, failure: CuaTrainError) -> None:
        with self.lock:
            self._failure = failure
            self._queue.clear()
            self._buffered = 0
            self._progress.notify_all()
