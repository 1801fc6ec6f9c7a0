"""`Emitter` opens streams and hands their events to the log.

Knows nothing of partitions, sockets or files, which belong to the log.
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
    """The only writer of its streams. Thread-safe; a forked child must open its own.

    Emitting waits for no I/O, except for room in the bounded buffer while that is full. An
    acknowledged event is on disk in the local log. `close` writes what is buffered and is
    idempotent; a process that ends without calling it loses the events that were not acknowledged.
    """

    def __init__(
        self,
        log: EventLog,
        blobs: FolderBlobs,
        *,
        clock: Callable[[], datetime] = now_utc,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        """Use `Emitter.open` instead."""
        self.log = log
        """For reading streams back and for waiting until events have reached other readers."""
        self.num_unshipped = 0
        """Records of this home left in the spool; set by `close`."""
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
        """Open an emitter into an installation's log, by default the one the environment describes.

        Raises LogBrokenError, UnreachableError if the blob store cannot be used, and
        StopRequestedError if `stop` is set while waiting for the local log's write lock.
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
        """The writer of a stream; the same object on every call while it is open.

        `history` is the stream as another writer left it; the next event opens the following epoch.
        `training_id` is stamped on the events; a training's own stream needs none. Raises
        ValueError if `training_id` differs from the open writer's, for a closed stream without
        `history`, and for a `history` that lacks events of this emitter.
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
        """Store a payload under its hash and return its ref.

        The payload is durable before any event emitted later. Identical content is stored once.
        `ref` is the payload's ref, if the caller has already computed it.
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
        """Wait until everything emitted so far is durable. Raises LogBrokenError, TimeoutError."""
        self._buffer.flush(timeout_s)

    def close(self, timeout_s: float = 30.0) -> int:
        """Write and ship buffered records, stop the threads, return the number left unshipped.

        Waits up to `timeout_s` for the disk and as long again for shipping. Unshipped records stay
        in the local log for the next process. Raises LogBrokenError or TimeoutError if something
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
                # A hanging write keeps its file open, and closing that file would block.
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
            # The caller must see the error raised inside the block; a broken log is chained to it.
            if isinstance(error, TimeoutError):
                logger.warning("the last events are not recorded: %s", error)

    def _on_stream_closed(self, writer: StreamWriter) -> None:
        """The caller holds the buffer's lock."""
        del self._streams[writer.subject]
        self._closed_streams[hash(writer.subject)] = writer.point
