"""Processes that execute SQL, started on demand and kept for later sessions.

Thread-safe. A call returns or raises within its time limit. A child that died is never lent again.
Every child ends with this process, however it ends.
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
"""Maximum idle children per memory size, 20 MB each. Starting one takes 0.12 s of CPU, four times
what the small policy takes for a session: with a limit of 16, sessions that end together, 64 of
them, cost more than their policy."""
START_TIME_S: Final = 60.0
"""Time limit for starting an interpreter on a busy machine."""
PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop());"
    " from producer.sql_execution.child import main; main()"
)
END_TIME_S: Final = 5.0
"""Time for a process to end by itself after its stream has ended."""
READ_BYTES: Final = 1 << 16

Fields = dict[str, Any]
Reason = Literal["cpu time", "no answer", "ended"]
"""Why a child ended. `cpu time`: its own timer ended it, because a statement took too long. `no
answer`: it was killed at the time limit. `ended`: any other reason."""


class ChildEndedError(Exception):
    """The process ended or did not answer in time. It has been killed."""

    def __init__(self, message: str, reason: Reason) -> None:
        super().__init__(message)
        self.reason = reason


class Child:
    """One process. Used by one thread at a time."""

    def __init__(self, memory_bytes: int) -> None:
        """Start the process. Raises DatabaseFailedError."""
        self.memory_bytes = memory_bytes
        # -S -I ignore the user's environment (-I includes -P). The new session shields from Ctrl-C.
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
        """Send a request and return the answer. Raises ChildEndedError."""
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
        except OSError:  # the process ended before it had read the whole request
            line = b""
        if not line:
            # The stream may end slightly before the process does.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_TIME_S)
            self.kill()
            message = f"it ended with {process.returncode}"
            reason: Reason = "cpu time" if process.returncode == -signal.SIGPROF else "ended"
            raise ChildEndedError(message, reason)
        fields: Fields = json.loads(line)
        return fields

    def kill(self) -> None:
        """Kill the process. Idempotent."""
        self._process.kill()
        self._process.wait()
        self._stream.close()

    def _read_line(self, deadline_s: float) -> bytes:
        """Read one line; empty at the end of the stream. Raises TimeoutError, OSError."""
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
    """The pool of child processes of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: defaultdict[int, list[Child]] = defaultdict(list)

    def borrow(self, memory_bytes: int) -> Child:
        """Take an idle child, or start a new one. Raises DatabaseFailedError."""
        with self._lock:
            idle = self._idle[memory_bytes]
            if idle:
                return idle.pop()
        return Child(memory_bytes)

    def give_back(self, child: Child) -> None:
        """Keep a working child for the next session, or end it."""
        with self._lock:
            idle = self._idle[child.memory_bytes]
            if len(idle) < MAX_IDLE:
                idle.append(child)
                return
        child.kill()

    def end(self) -> None:
        """End the idle children."""
        with self._lock:
            children = [child for idle in self._idle.values() for child in idle]
            self._idle.clear()
        for child in children:
            child.kill()


CHILDREN: Final = Children()
atexit.register(CHILDREN.end)
