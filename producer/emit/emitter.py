"""`Emitter`: opens streams and hands their events to the log.

Knows no partition, no socket and no file; those belong to the log.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Self
from uuid import UUID

from producer.blobs import FolderBlobs, staging_blobs
from producer.emit.group_commit import Blob, GroupCommitBuffer
from producer.emit.stream import RECORD_OVERHEAD_BYTES, EmitContext, StreamWriter
from producer.errors import CuaTrainError
from producer.log.event_log import EventLog
from producer.log.stream_history import StreamHistory
from schemas.blobs import blob_ref
from schemas.event import StreamPoint
from schemas.ids import new_source
from schemas.installation import Installation, read_installation

logger = logging.getLogger(__name__)

BUFFER_BYTES = 32 << 20


def now_utc() -> datetime:
    """The default clock."""
    return datetime.now(UTC)


class Emitter:
    """The one writer of its streams. Thread-safe; a forked child must open its own.

    Emitting waits for no I/O, except for room while the bounded buffer is full. Acknowledged means
    on disk in the local log. `close` writes what is buffered; a process that ends without it loses
    what was not acknowledged. `close` is idempotent.
    """

    def __init__(
        self,
        log: EventLog,
        blobs: FolderBlobs,
        *,
        clock: Callable[[], datetime] = now_utc,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        """Prefer `Emitter.open`."""
        self.log = log
        """For reading streams back and for waiting until events are where others read them."""
        self.num_unshipped = 0
        """Records of the home that were left in the spool; known once it is closed."""
        self.source = new_source(clock())
        """This writer's name in its events: `//host/pid/start`."""
        self._streams: dict[str, StreamWriter] = {}
        self._closed_streams: dict[int, StreamPoint] = {}
        self._is_closed = False
        self._buffer = GroupCommitBuffer(
            log.local.append, blobs.put_many, buffer_bytes=buffer_bytes, on_commit=log.notify
        )
        self._context = EmitContext(
            self._buffer,
            clock,
            self.source,
            log.topic_prefix,
            self._on_stream_closed,
            log.max_event_bytes,
        )

    @classmethod
    def open(
        cls,
        installation: Installation | None = None,
        *,
        clock: Callable[[], datetime] = now_utc,
        stop: threading.Event | None = None,
    ) -> Self:
        """An emitter into an installation's log; None: the one the environment describes.

        Raises LogBrokenError, UnreachableError for a blob store that cannot be used, and
        StopRequestedError once `stop` is set while it waits for the local log's write lock.
        """
        installation = installation or read_installation(os.environ)
        log = EventLog.open(installation, stop)
        return cls(log, staging_blobs(installation), clock=clock)

    def stream(
        self,
        subject: str,
        history: StreamHistory | None = None,
        *,
        training_id: UUID | None = None,
    ) -> StreamWriter:
        """The writer of a stream; the same one at every call while it is open.

        `history`: the stream as another writer left it; the next event opens the epoch after it.
        `training_id`: stamped on the events; a training's own stream needs none. Raises ValueError
        for another `training_id` than the open writer's, for a closed stream without `history`, and
        for a `history` that lacks events of this emitter.
        """
        with self._buffer.lock:
            known = self._streams.get(subject)
            if known is not None:
                self._check_same(known, history, training_id)
                return known
            self._check_reopening(subject, history)
            writer = StreamWriter(self._context, subject, training_id=training_id, history=history)
            self._streams[subject] = writer
            return writer

    @staticmethod
    def _check_same(
        known: StreamWriter, history: StreamHistory | None, training_id: UUID | None
    ) -> None:
        if history is not None:
            message = f"{known.subject} is already being written by this emitter; close it first"
            raise ValueError(message)
        if training_id not in {None, known.training_id}:
            message = f"{known.subject} is open for training {known.training_id}, not {training_id}"
            raise ValueError(message)

    def _check_reopening(self, subject: str, history: StreamHistory | None) -> None:
        last = self._closed_streams.get(hash(subject))
        if last is None:
            return
        if history is None:
            message = f"{subject} was closed; an event after that would count as a duplicate"
            raise ValueError(message)
        if history.position.point < last:
            message = f"{subject} was read back before this emitter appended {last}; read it again"
            raise ValueError(message)

    def put_blob(self, content: bytes, ref: str | None = None) -> str:
        """Store a payload under its hash, durable before any event emitted after this; its ref.

        `ref`: its name when the caller has it already. The same content is stored once.
        """
        ref = ref or blob_ref(content)
        buffer = self._buffer
        buffer.check_process()
        with buffer.lock:
            buffer.wait_for_room()
            if not buffer.knows_blob(ref):
                buffer.put(Blob(ref, content), len(content) + RECORD_OVERHEAD_BYTES)
        return ref

    def flush(self, timeout_s: float | None = None) -> None:
        """Return once everything emitted before is durable. LogBrokenError, TimeoutError."""
        self._buffer.flush(timeout_s)

    def close(self, timeout_s: float = 30.0) -> int:
        """Write and ship what is buffered, stop the threads; how many records are not shipped.

        Waits up to `timeout_s` for the disk and as long again for shipping. Unshipped records stay
        in the local log for the next process. Raises LogBrokenError or TimeoutError when something
        could not be written; the emitter is closed all the same.
        """
        if self._is_closed:
            return 0
        self._is_closed = True
        deadline = time.monotonic() + timeout_s
        is_written = False
        try:
            self._buffer.flush(timeout_s)
        finally:
            try:
                is_written = self._buffer.stop(max(0.0, deadline - time.monotonic()))
            finally:
                # A write that hangs keeps its file; closing that would wait for it.
                ship_s = timeout_s if is_written else 0.0
                self.num_unshipped = self.log.close(ship_s, keep_file=not is_written)
        return self.num_unshipped

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: object, exc: BaseException | None, _traceback: object) -> None:
        try:
            self.close()
        except (CuaTrainError, TimeoutError) as error:
            if exc is None:
                raise
            # The error inside the block is what the caller must see; a broken log is behind it.
            if isinstance(error, TimeoutError):
                logger.warning("the last events are not recorded: %s", error)

    def _on_stream_closed(self, writer: StreamWriter) -> None:
        """With the buffer's lock held."""
        del self._streams[writer.subject]
        self._closed_streams[hash(writer.subject)] = writer.point
