"""`Emitter`: opens streams and hands their events to the log.

Knows no partition, no socket and no file; those are the log's.
"""

import contextlib
import os
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Self
from uuid import UUID

from producer.blobs import FolderBlobs
from producer.emit.group_commit import Blob, GroupCommitBuffer
from producer.emit.source import new_source
from producer.emit.stream import RECORD_OVERHEAD_BYTES, EmitContext, StreamWriter
from producer.errors import CuaTrainError
from producer.log.event_log import EventLog, staging_blobs
from producer.log.stream_history import StreamHistory
from schemas.blobs import blob_ref
from schemas.catalogue import topic_of
from schemas.installation import Installation, read_installation

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
        topic_prefix: str = "cua.",
        clock: Callable[[], datetime] = now_utc,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        """Prefer `Emitter.open`."""
        self.log = log
        """For reading streams back and for waiting until events are where others read them."""
        self._clock = clock
        self._source = new_source(clock())
        self._streams: dict[str, StreamWriter] = {}
        self._closed_streams: set[int] = set()
        self._is_closed = False
        self._buffer = GroupCommitBuffer(
            log.local.append, blobs.put_many, buffer_bytes=buffer_bytes, on_commit=log.notify
        )
        self._context = EmitContext(
            self._buffer, clock, self._source, topic_prefix, os.getpid(), self._on_stream_closed
        )

    @classmethod
    def open(
        cls,
        installation: Installation | None = None,
        *,
        clock: Callable[[], datetime] = now_utc,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> Self:
        """An emitter into an installation's log; None: the one the environment describes.

        LogBrokenError, UnreachableError.
        """
        installation = installation or read_installation(os.environ)
        return cls(
            EventLog.open(installation),
            staging_blobs(installation),
            topic_prefix=installation.topic_prefix,
            clock=clock,
            buffer_bytes=buffer_bytes,
        )

    @property
    def source(self) -> str:
        """This writer's name in its events: `//host/pid/start`."""
        return self._source

    def stream(
        self,
        subject: str,
        history: StreamHistory | None = None,
        *,
        training_id: UUID | None = None,
    ) -> StreamWriter:
        """The writer of a stream; the same one at every call while it is open.

        `history`: the stream as another writer left it; the next event opens the epoch after it.
        `training_id`: stamped on the events; a training's own stream needs none. ValueError for a
        stream that was closed, or with `history` one that this emitter has already written.
        """
        with self._buffer.lock:
            known = self._streams.get(subject)
            if history is None and known is not None:
                return known
            if history is None and hash(subject) in self._closed_streams:
                message = f"{subject} was closed; an event after that would count as a duplicate"
                raise ValueError(message)
            if known is not None and known.num_emitted:
                message = f"{subject} is already being written by this emitter"
                raise ValueError(message)
            topic = topic_of(subject, self._context.topic_prefix)
            writer = StreamWriter(
                self._context, subject, topic, training_id=training_id, history=history
            )
            self._closed_streams.discard(hash(subject))
            self._streams[subject] = writer
            return writer

    def put_blob(self, content: bytes, ref: str | None = None) -> str:
        """Store a payload under its hash, durable before any event emitted after this; its ref.

        `ref`: its name when the caller has it already. The same content is stored once.
        """
        ref = ref or blob_ref(content)
        buffer = self._buffer
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
        in the local log for the next process. LogBrokenError when something could not be written;
        the emitter is closed all the same.
        """
        if self._is_closed:
            return 0
        self._is_closed = True
        try:
            self._buffer.flush(timeout_s)
        finally:
            num_left = self._close_log(timeout_s)
        return num_left

    def _close_log(self, timeout_s: float) -> int:
        is_written = self._buffer.stop(timeout_s)
        # A thread that still writes keeps its file.
        return self.log.close(timeout_s) if is_written else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # The error inside the block is what the caller must see; a broken log is behind it.
        with contextlib.suppress(*([CuaTrainError, TimeoutError] if exc is not None else [])):
            self.close()

    def _on_stream_closed(self, writer: StreamWriter) -> None:
        """With the buffer's lock held."""
        if self._streams.get(writer.subject) is writer:
            del self._streams[writer.subject]
            self._closed_streams.add(hash(writer.subject))
