"""Group commit: a background thread makes buffered records durable, blobs first.

Owns the bounded buffer between the caller's thread and the disk. Knows nothing of streams and
payloads.
"""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from producer.errors import CuaTrainError, LogBrokenError
from producer.log.writer import Record

logger = logging.getLogger(__name__)

BATCH_BYTES = 8 << 20
"""Maximum size of one commit, so that acknowledgements keep coming while a full buffer drains."""
LINGER_S = 0.010
"""How long a batch waits for more records after its first. At 1,000 events/s, ten records share one
sync. `wait` and `flush` end the wait early."""
KNOWN_BLOBS = 65536
"""Number of refs remembered as written, about 10 MB. Other refs are looked up in the store."""
CLOSED = "the emitter was closed; open another one to record more"


class Blob(NamedTuple):
    """A payload that is stored before any record queued after it."""

    ref: str
    content: bytes


class GroupCommitBuffer:
    """Bounded buffer and the thread that drains it. Thread-safe; not usable in a forked child.

    `put` waits for no I/O. `wait_for_room` blocks while the buffer is full and logs one warning.
    After a failure nothing more is written: `wait_for_room`, `wait` and `flush` raise the same
    LogBrokenError for everything not yet acknowledged. `stop` writes what was put before it;
    nothing can be put afterwards. `stop` is idempotent.
    """

    def __init__(
        self,
        append: Callable[[Sequence[Record]], object],
        put_blobs: Callable[[Mapping[str, bytes]], None],
        *,
        buffer_bytes: int,
        on_commit: Callable[[], None],
    ) -> None:
        """`append` and `put_blobs` return once durable; `on_commit` runs after each commit."""
        self._append = append
        self._put_blobs = put_blobs
        self._limit = buffer_bytes
        self._on_commit = on_commit
        self.lock = threading.Lock()
        """Guards all state of the buffer. A StreamWriter holds it while it stamps an event, so that
        sequence numbers and queue order agree."""
        self._pid = os.getpid()
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
        self._known_blobs: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="cua-emitter", daemon=True)
        self._thread.start()

    def check_process(self) -> None:
        """Raise RuntimeError in a forked child, where no thread drains.

        Call before taking the lock.
        """
        if os.getpid() != self._pid:
            message = "this emitter belongs to the parent process; open another one after the fork"
            raise RuntimeError(message)

    def wait_for_room(self) -> None:
        """Wait until the buffer has room. The caller holds the lock.

        Raises LogBrokenError after a failure or `stop`.
        """
        self._check_open()
        if self._buffered < self._limit:
            return
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "the disk cannot keep up: %d MiB of events are buffered; emit waits for room now",
                self._buffered >> 20,
            )
        self._urgent.set()
        self._progress.wait_for(
            lambda: self._buffered < self._limit or self._failure is not None or self._is_stopping
        )
        # After `stop`, the thread may have found the queue empty and ended.
        self._check_open()

    def _check_open(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._is_stopping:
            raise LogBrokenError(CLOSED)

    def put(self, item: Record | Blob, size: int) -> int:
        """Enqueue an item and return the number to pass to `wait`.

        The caller holds the lock and has called `wait_for_room`.
        """
        self._queue.append((item, size))
        self._buffered += size
        self._accepted += 1
        if self._is_idle:
            self._is_idle = False
            self._work.notify()
        return self._accepted

    def knows_blob(self, ref: str) -> bool:
        """Whether this blob is stored or queued; remembers it. The caller holds the lock."""
        if ref in self._known_blobs:
            return True
        if len(self._known_blobs) >= KNOWN_BLOBS:
            self._known_blobs.clear()
        self._known_blobs.add(ref)
        return False

    def is_done(self, number: int) -> bool:
        """Whether item `number` is durable."""
        return self._committed >= number

    def wait(self, number: int, timeout_s: float | None) -> None:
        """Wait until item `number` is durable.

        Raises LogBrokenError if it never will be, TimeoutError after `timeout_s`.
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
        message = f"the local log did not acknowledge within {timeout_s:g} s; it is still trying"
        raise TimeoutError(message)

    def flush(self, timeout_s: float | None) -> None:
        """Wait until everything put so far is durable. Raises as `wait` does."""
        with self.lock:
            number = self._accepted
            if self._failure is not None:
                raise self._failure
        self.wait(number, timeout_s)

    def stop(self, timeout_s: float | None) -> bool:
        """Write what is buffered and end the thread.

        Returns whether it ended within `timeout_s`.
        """
        with self.lock:
            self._is_stopping = True
            self._urgent.set()
            self._work.notify()
            # Threads waiting for room raise now: what they would put could miss the last batch.
            self._progress.notify_all()
        self._thread.join(timeout_s)
        with self.lock:
            if self._failure is None:
                self._failure = LogBrokenError(CLOSED)
            # A thread that hangs in a write never acknowledges its items.
            self._progress.notify_all()
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (batch := self._next_batch()) is not None:
            try:
                self._commit([item for item, _ in batch])
            except CuaTrainError as error:
                self._end_with(error)
                return
            except Exception as error:  # noqa: BLE001  # the thread's boundary
                # Whatever went wrong, pending acknowledgements must raise it.
                self._end_with(LogBrokenError(f"the log broke: {type(error).__name__}: {error}"))
                return
            with self.lock:
                self._committed += len(batch)
                self._buffered -= sum(size for _, size in batch)
                self._progress.notify_all()
            self._on_commit()

    def _next_batch(self) -> list[tuple[Record | Blob, int]] | None:
        """Wait for items and return a batch; None when stopped and drained."""
        with self.lock:
            while not self._queue:
                if self._is_stopping:
                    return None
                self._is_idle = True
                self._work.wait()
            self._is_idle = False
        self._urgent.wait(LINGER_S)
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
                    f"a screenshot or other payload cannot be stored: {error}. Make room on that"
                    " disk and run the same command again"
                )
                raise LogBrokenError(message) from error
        self._append([item for item in items if isinstance(item, Record)])

    def _end_with(self, failure: CuaTrainError) -> None:
        with self.lock:
            self._failure = failure
            self._queue.clear()
            self._buffered = 0
            self._progress.notify_all()
