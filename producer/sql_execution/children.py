"""Processes that execute SQL, started when they are needed and kept for the next session.

Guarantees: thread-safe; a call returns or raises within its time limit; a child that died is never
lent again; every child ends with this process, however it ends.
"""

import atexit
import contextlib
import json
import os
import selectors
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, Final

from producer.sql_execution.database import DatabaseFailedError

MAX_IDLE: Final = 64
"""Kept for each size of memory; 20 MB each. Starting one takes 0.12 s of CPU, four times what the
small policy takes for a session: with 16 kept, sessions that end together, 64 of them, cost more
than their policy."""
START_TIME_S: Final = 60.0
"""Of an interpreter on a busy machine."""
PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop());"
    " from producer.sql_execution.child import main; main()"
)
READ_BYTES: Final = 1 << 16

Fields = dict[str, Any]


class ChildEndedError(Exception):
    """The process ended or did not answer in time; it is killed."""


class Child:
    """One process. Used by one thread at a time."""

    def __init__(self, memory_bytes: int) -> None:
        """Start it. DatabaseFailedError."""
        self.memory_bytes = memory_bytes
        # -S -I: nothing of the user's environment; -P is part of -I. No Ctrl-C of the terminal's.
        command = [sys.executable, "-S", "-I", "-c", PROGRAM, str(memory_bytes)]
        try:
            self._process = subprocess.Popen(
                [*command, json.dumps([str(Path(folder).absolute()) for folder in sys.path])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,
                cwd="/",
            )
        except OSError as error:
            message = f"the process that executes SQL cannot be started: {error}"
            raise DatabaseFailedError(message) from error

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def ask(self, request: Fields, timeout_s: float) -> Fields:
        """The answer to a request. ChildEndedError."""
        process = self._process
        assert process.stdin is not None  # noqa: S101  # both are pipes
        assert process.stdout is not None  # noqa: S101
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            line = _read_line(process.stdout.fileno(), timeout_s)
        except OSError as error:
            self.kill()
            raise ChildEndedError(str(error)) from error
        if line is None:
            self.kill()
            message = f"no answer within {timeout_s:g} s"
            raise ChildEndedError(message)
        if not line:
            self.kill()
            message = f"it ended with {process.returncode}"
            raise ChildEndedError(message)
        fields: Fields = json.loads(line)
        return fields

    def kill(self) -> None:
        """End it. Idempotent."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _read_line(descriptor: int, timeout_s: float) -> bytes | None:
    """One line; empty at the end of the file; None when the time is over."""
    deadline = monotonic() + timeout_s
    parts: list[bytes] = []
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            if not selector.select(max(deadline - monotonic(), 0)):
                return None
            part = os.read(descriptor, READ_BYTES)
            if not part:
                return b""
            parts.append(part)
            if part.endswith(b"\n"):
                return b"".join(parts)


class Children:
    """The processes of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: defaultdict[int, list[Child]] = defaultdict(list)

    def borrow(self, memory_bytes: int) -> Child:
        """A child that nobody uses; a new one if there is none. DatabaseFailedError."""
        with self._lock:
            idle = self._idle[memory_bytes]
            if idle:
                return idle.pop()
        return Child(memory_bytes)

    def give_back(self, child: Child) -> None:
        """Keep a child that works for the next session, or end it."""
        with self._lock:
            idle = self._idle[child.memory_bytes]
            if len(idle) < MAX_IDLE:
                idle.append(child)
                return
        child.kill()

    def end(self) -> None:
        """End those that nobody uses."""
        with self._lock:
            children = [child for idle in self._idle.values() for child in idle]
            self._idle.clear()
        for child in children:
            child.kill()


CHILDREN: Final = Children()
atexit.register(CHILDREN.end)
