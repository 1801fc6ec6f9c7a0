"""Processes that execute SQL, started when they are needed and kept for the next session.

Guarantees: thread-safe; a call returns or raises within its time limit; a child that died is never
lent again; every child ends with this process, however it ends.
"""

import atexit
import contextlib
import json
import signal
import socket
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, Final, Literal

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
END_TIME_S: Final = 5.0
"""For a process whose stream has ended to end itself."""
READ_BYTES: Final = 1 << 16

Fields = dict[str, Any]
Reason = Literal["cpu time", "no answer", "ended"]
"""`cpu time`: its own timer ended it, because a statement took too much; `no answer`: it was killed
when the time was over; `ended`: anything else ended it."""


class ChildEndedError(Exception):
    """The process ended or did not answer in time; it is killed."""

    def __init__(self, message: str, reason: Reason) -> None:
        super().__init__(message)
        self.reason = reason


class Child:
    """One process. Used by one thread at a time."""

    def __init__(self, memory_bytes: int) -> None:
        """Start it. DatabaseFailedError."""
        self.memory_bytes = memory_bytes
        # -S -I: nothing of the user's environment; -P is part of -I. No Ctrl-C of the terminal's.
        command = [sys.executable, "-S", "-I", "-c", PROGRAM, str(memory_bytes)]
        self._stream, its = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [*command, json.dumps([str(Path(folder).absolute()) for folder in sys.path])],
                stdin=its.fileno(),
                stdout=its.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )
        except OSError as error:
            self._stream.close()
            message = f"the process that executes SQL cannot be started: {error}"
            raise DatabaseFailedError(message) from error
        finally:
            its.close()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def ask(self, request: Fields, timeout_s: float) -> Fields:
        """The answer to a request. ChildEndedError."""
        process = self._process
        deadline_s = monotonic() + timeout_s
        try:
            self._stream.settimeout(timeout_s)
            self._stream.sendall(json.dumps(request).encode() + b"\n")
            line = self._read_line(deadline_s)
        except TimeoutError as error:
            self.kill()
            message = f"no answer within {timeout_s:g} s"
            raise ChildEndedError(message, "no answer") from error
        except OSError:  # it ended before it had read the whole request
            line = b""
        if not line:
            # The stream's end is seen before the process's.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_TIME_S)
            self.kill()
            message = f"it ended with {process.returncode}"
            reason: Reason = "cpu time" if process.returncode == -signal.SIGPROF else "ended"
            raise ChildEndedError(message, reason)
        fields: Fields = json.loads(line)
        return fields

    def kill(self) -> None:
        """End it. Idempotent."""
        self._process.kill()
        self._process.wait()
        self._stream.close()

    def _read_line(self, deadline_s: float) -> bytes:
        """One line; empty at the end of the stream. TimeoutError, OSError."""
        parts: list[bytes] = []
        while not parts or not parts[-1].endswith(b"\n"):
            left_s = deadline_s - monotonic()
            if left_s <= 0:
                raise TimeoutError
            self._stream.settimeout(left_s)
            part = self._stream.recv(READ_BYTES)
            if not part:
                return b""
            parts.append(part)
        return b"".join(parts)


class Children:
    """The processes of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: defaultdict[int, list[Child]] = defaultdict(list)

    def borrow(self, memory_bytes: int) -> Child:
        """An idle child; a new one if there is none. DatabaseFailedError."""
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
        """End the idle ones."""
        with self._lock:
            children = [child for idle in self._idle.values() for child in idle]
            self._idle.clear()
        for child in children:
            child.kill()


CHILDREN: Final = Children()
atexit.register(CHILDREN.end)
