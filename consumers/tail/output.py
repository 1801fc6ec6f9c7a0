"""Where `tail` prints; tracks which records its reader has received.

A pipe keeps what a reader that goes away has not read: as much as it may hold then counts as not
printed, so that a record may be printed again and none is skipped.
"""

import io
import os
import select
import stat
import time
from collections import deque
from collections.abc import Mapping
from typing import BinaryIO

from consumers.log.reader import TopicPartition
from consumers.tail.stop import Stop
from schemas.standard_streams import STDOUT

CHUNK = select.PIPE_BUF
"""A pipe that takes anything takes so many bytes without blocking."""
BUFFER_BYTES = 1 << 16
"""Gathered before they are written."""
PIPE_BYTES = 1 << 20
"""The most that Linux lets a pipe hold (fs.pipe-max-size) for a user without privileges."""
POLL_MS = 100
DRAIN_S = 2.0
"""How long a reader that does not read is waited for after a signal."""


class Output:
    """Whole records to a file, a terminal or a pipe, with the positions after each.

    `flush` raises BrokenPipeError when the reader is gone, OSError when the disk is full; `printed`
    names no record too many in either case.
    """

    def __init__(self, out: BinaryIO, stop: Stop) -> None:
        self._out = out
        self._stop = stop
        try:
            self._descriptor: int | None = out.fileno()
        except (OSError, io.UnsupportedOperation):
            self._descriptor = None
        self._is_pipe = self._descriptor is not None and stat.S_ISFIFO(
            os.fstat(self._descriptor).st_mode
        )
        self._window = PIPE_BYTES if self._is_pipe else 0
        """Bytes that were written and that nobody may read."""
        self._buffer = bytearray()
        self._num_bytes = 0
        """Added so far."""
        self._num_written = 0
        self._settled: dict[TopicPartition, int] = {}
        self._pending: deque[tuple[int, dict[TopicPartition, int]]] = deque()
        """(end of a printed record in bytes, positions after it and the unprinted ones behind)."""

    def begin(self, positions: Mapping[TopicPartition, int]) -> None:
        """Positions before anything is printed."""
        self._settled = dict(positions)

    def print(self, content: bytes, at: TopicPartition, next_offset: int) -> None:
        """A record; it may wait in the buffer."""
        self._buffer += content
        self._num_bytes += len(content)
        self._pending.append((self._num_bytes, {at: next_offset}))
        if len(self._buffer) >= BUFFER_BYTES:
            self.flush()

    def skip(self, at: TopicPartition, next_offset: int) -> None:
        """A record that is not to be printed."""
        if self._pending:
            self._pending[-1][1][at] = next_offset
        else:
            self._settled[at] = next_offset

    def flush(self) -> None:
        """Write what is in the buffer. After a signal it waits for a slow reader only so long."""
        if self._descriptor is None:
            self._out.write(bytes(self._buffer))
            self._out.flush()
            self._num_written += len(self._buffer)
            self._buffer.clear()
        else:
            self._write(self._descriptor)
        self._settle()

    def _write(self, descriptor: int) -> None:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        deadline = None
        while self._buffer:
            if self._stop.requested and deadline is None:
                deadline = time.monotonic() + DRAIN_S
            if deadline is not None and (self._stop.is_urgent or time.monotonic() > deadline):
                return
            if not is_file:
                events = poll.poll(POLL_MS)
                if not events:
                    continue
                if events[0][1] & select.POLLERR:
                    raise BrokenPipeError
            try:
                written = os.write(descriptor, self._buffer[: None if is_file else CHUNK])
            except OSError as error:
                error.filename = STDOUT
                raise
            self._num_written += written
            del self._buffer[:written]

    def _settle(self) -> None:
        """Forget how to take back what the reader has certainly got."""
        certain = self._num_written - self._window
        while self._pending and self._pending[0][0] <= certain:
            self._settled |= self._pending.popleft()[1]

    def printed(self) -> dict[TopicPartition, int]:
        """The positions after the last record that the reader got, or will get from the pipe.

        Of a pipe whose reader is gone: after the last one that it has certainly got.
        """
        positions = dict(self._settled)
        if self._is_pipe and self._descriptor is not None and self._is_abandoned(self._descriptor):
            return positions
        for end, after in self._pending:
            if end > self._num_written:
                break
            positions |= after
        return positions

    @staticmethod
    def _is_abandoned(descriptor: int) -> bool:
        """Whether the reader of the pipe is gone."""
        poll = select.poll()
        poll.register(descriptor, 0)
        return any(event & select.POLLERR for _, event in poll.poll(0))
