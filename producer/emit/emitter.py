"""`Emitter`: gives every fact its id, time and place in its stream, and hands it to the log.

Owns the order of streams as their one writer. Knows no partition, no socket and no file; those are
the log's.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from producer.emit.group_commit import Blob, BlobSink, GroupCommitBuffer
from producer.emit.source import draw_source
from producer.emit.stream import Entity, OpenStream
from producer.errors import CuaTrainError
from producer.log.local import LocalLog
from producer.log.replicator import LogReplicator, open_replicator, staging_blobs
from producer.log.stream_history import StreamHistory, read_back, read_into
from producer.log.writer import LogWriter, Record, TopicPartition
from schemas.blobs import blob_ref
from schemas.catalogue import TOPIC_NAMES, topic_of
from schemas.event import Fact
from schemas.ids import uuid7_text
from schemas.installation import Installation, read_installation
from schemas.streams import StreamPosition
from schemas.wire import encode

BUFFER_BYTES = 32 << 20
RECORD_OVERHEAD = 500
"""Bytes that a waiting record costs beside its value (tuples, key, list slots), counted towards the
buffer's bound."""


def say_on_stderr(message: str) -> None:
    """The default for what a person should know; one line."""
    print(message, file=sys.stderr, flush=True)  # noqa: T201  # stderr is where it belongs


def now_utc() -> datetime:
    """The default clock."""
    return datetime.now(UTC)


class Acknowledgement:
    """The promise of one fact. Done once it is on disk in the local log."""

    __slots__ = ("_buffer", "_number")

    def __init__(self, buffer: GroupCommitBuffer, number: int) -> None:
        self._buffer = buffer
        self._number = number

    @property
    def done(self) -> bool:
        """Whether it is durable; never waits."""
        return self._buffer.is_done(self._number)

    def wait(self, timeout_s: float | None = None) -> None:
        """Return once it is durable.

        LogBrokenError when it never will be, TimeoutError after `timeout_s`.
        """
        self._buffer.wait(self._number, timeout_s)


class Emitter:
    """The one writer of its streams.

    Thread-safe; belongs to the process that opened it (a forked child must open its own).

    `emit` waits for no I/O, except that it waits for room, and says so once, while the bounded
    buffer is full. It raises IllegalTransitionError (nothing is appended, the stream goes on) and,
    after the log failed or on a closed emitter, LogBrokenError. `close` writes what is there;
    without it a process that ends loses what was not acknowledged. Twice is once.
    """

    def __init__(
        self,
        log: LocalLog,
        blobs: BlobSink,
        *,
        topic_prefix: str,
        replicator: LogReplicator | None = None,
        clock: Callable[[], datetime] = now_utc,
        buffer_bytes: int = BUFFER_BYTES,
        say: Callable[[str], None] = say_on_stderr,
    ) -> None:
        """Prefer `Emitter.open`. `outlet`: what ships the local log further; None.

        The local log is the log.
        """
        self._local = log
        self._replicator = replicator
        self._topic_prefix = topic_prefix
        self._clock = clock
        self._say = say
        self._pid = os.getpid()
        self._source = draw_source(clock())
        self._streams: dict[str, OpenStream] = {}
        self._forgotten: set[int] = set()
        self._is_closed = False
        self._buffer = GroupCommitBuffer(
            log, blobs, buffer_bytes=buffer_bytes, say=say, on_commit=self._committed
        )

    @classmethod
    def open(
        cls,
        installation: Installation | None = None,
        *,
        clock: Callable[[], datetime] = now_utc,
        buffer_bytes: int = BUFFER_BYTES,
        say: Callable[[str], None] = say_on_stderr,
    ) -> Self:
        """An emitter into an installation's log; None: the one that the environment describes.

        LogBrokenError.
        """
        where = read_installation(os.environ) if installation is None else installation
        topics = [where.topic_prefix + name for name in TOPIC_NAMES]
        log = LocalLog(where.local_log_path, topics=topics)
        return cls(
            log,
            staging_blobs(where),
            topic_prefix=where.topic_prefix,
            replicator=open_replicator(where, log, topics, say=say),
            clock=clock,
            buffer_bytes=buffer_bytes,
            say=say,
        )

    @property
    def source(self) -> str:
        """This writer's name in its events: `//host/pid/start`."""
        return self._source

    @property
    def log(self) -> LogWriter:
        """`open_log` without waiting."""
        return self.open_log(0.0)

    def open_log(self, timeout_s: float) -> LogWriter:
        """The log that others read, for reading streams back: the local log, or Kafka.

        UnreachableError after `timeout_s` without it.
        """
        return self._local if self._replicator is None else self._replicator.log(timeout_s)

    def wait_shipped(self, timeout_s: float) -> None:
        """Return once everything that was said before lies in the log that others read.

        UnreachableError, LogBrokenError.
        """
        self.flush(timeout_s)
        if self._replicator is not None:
            self._replicator.wait_shipped(timeout_s)

    def read_back(
        self, subject: str, since: Mapping[TopicPartition, int], *, timeout_s: float = 0.0
    ) -> StreamHistory:
        """A stream as it is in the log that others read.

        See `producer.log.stream_history.read_back`.
        """
        return read_back(self.open_log(timeout_s), subject, since, topic_prefix=self._topic_prefix)

    def read_into(self, history: StreamHistory, since: Mapping[TopicPartition, int]) -> None:
        """Go on reading a stream, from bounds at or before its last record read.

        What was read before counts as repetition.
        """
        read_into(self.log, history, since, topic_prefix=self._topic_prefix)

    def lower_bounds(self) -> dict[TopicPartition, int]:
        """Offsets that nothing emitted from now on lies before, for a manifest; a place not named.

        The beginning.

        Waits for no network: with Kafka they are as of `open_log`'s first contact, and empty before
        it.
        """
        return self._local.ends() if self._replicator is None else self._replicator.lower_bounds()

    def emit(self, fact: Fact) -> Acknowledgement:
        """Say a fact; what it may raise stands with the class."""
        payload, subject = fact.data, fact.subject
        buffer = self._buffer
        with buffer.lock:
            buffer.wait_for_room()
            self._check_process()
            stream = self._streams.get(subject)
            if stream is None:
                stream = self._open_stream(subject)
            change = stream.check(payload)
            sequence = stream.sequence + 1
            now = self._clock()
            value = encode(
                payload,
                id=uuid7_text(now),
                source=self._source,
                time=now,
                subject=subject,
                epoch=stream.epoch,
                sequence=sequence,
                training_id=fact.training_id,
                continues=stream.continues if sequence == 1 else None,
            )
            stream.take(change)
            number = buffer.put(Record(stream.topic, subject, value), len(value) + RECORD_OVERHEAD)
        return Acknowledgement(buffer, number)

    def put_blob(self, content: bytes) -> str:
        """Store a payload under its hash, durable before any fact emitted after this; its ref.

        The same bytes are stored once.
        """
        ref = blob_ref(content)
        buffer = self._buffer
        with buffer.lock:
            buffer.wait_for_room()
            self._check_process()
            if not buffer.knows_blob(ref):
                buffer.put(Blob(ref, content), len(content) + RECORD_OVERHEAD)
        return ref

    def resume_stream(
        self, subject: str, *, position: StreamPosition, statuses: Mapping[Entity, str]
    ) -> None:
        """Continue a stream that another writer left at `position`.

        The next fact on it opens the epoch after that.

        ValueError when this emitter has already said something on it.
        """
        with self._buffer.lock:
            stream = self._streams.get(subject)
            if stream is not None and stream.sequence:
                message = (
                    f"expected a stream that this emitter has not written, found {subject} at"
                    f" {stream.epoch}/{stream.sequence}"
                )
                raise ValueError(message)
            self._forgotten.discard(hash(subject))
            self._streams[subject] = OpenStream(
                subject,
                topic_of(subject, self._topic_prefix),
                epoch=position.epoch + 1,
                continues=position.point if position.epoch else None,
                statuses=dict(statuses),
            )

    def forget_stream(self, subject: str) -> None:
        """Free the memory of a stream that has come to its end.

        A later fact on it raises ValueError. Unknown ones are ignored.
        """
        with self._buffer.lock:
            if self._streams.pop(subject, None) is not None:
                self._forgotten.add(hash(subject))

    def renew_source(self, subject: str) -> str:
        """Take another name, to claim `subject` again after another writer was first. The new name.

        ValueError when any other stream was written under the old one: its readers would take the
        new name for a stranger's.
        """
        with self._buffer.lock:
            others = [
                name
                for name, stream in self._streams.items()
                if stream.sequence and name != subject
            ]
            if others or self._forgotten:
                message = (
                    f"expected nothing said but the claim on {subject}, found facts on"
                    f" {', '.join(others[:3]) or 'ended streams'}"
                )
                raise ValueError(message)
            self._streams.pop(subject, None)
            self._source = draw_source(self._clock())
            return self._source

    def flush(self, timeout_s: float | None = None) -> None:
        """Return once everything said before is durable. LogBrokenError, TimeoutError."""
        self._buffer.flush(timeout_s)

    def close(self, timeout_s: float = 30.0) -> int:
        """Write what is there, ship it, stop the threads, close the files.

        How many records still wait to be shipped.

        Waits up to `timeout_s` for the disk, and as long again for shipping; what is left is said,
        stays in the local log and is shipped by the next process. LogBrokenError when something
        could not be written; it is closed all the same.
        """
        if self._is_closed:
            return 0
        self._is_closed = True
        num_left = 0
        try:
            self._buffer.flush(timeout_s)
        finally:
            try:
                if self._replicator is not None:
                    num_left = self._replicator.close(timeout_s)
            finally:
                if self._buffer.stop(timeout_s):
                    self._local.close()
        return num_left

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # What went wrong inside is what its caller has to know; that the log broke too is behind
        # it, or the same.
        with contextlib.suppress(*([CuaTrainError, TimeoutError] if exc is not None else [])):
            self.close()

    def _open_stream(self, subject: str) -> OpenStream:
        if hash(subject) in self._forgotten:
            message = (
                f"{subject} was forgotten at its end; what is said after that would count as a"
                " repetition"
            )
            raise ValueError(message)
        stream = OpenStream(subject, topic_of(subject, self._topic_prefix))
        self._streams[subject] = stream
        return stream

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            message = "this emitter belongs to the parent process; a forked child must open its own"
            raise RuntimeError(message)

    def _committed(self) -> None:
        """Something reached the local log; on the committer's thread."""
        if self._replicator is not None:
            self._replicator.poke()
