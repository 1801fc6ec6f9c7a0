"""Ports for servers that a test starts, or that nobody listens on: each is given to one test.

A port that the system chose (bind to 0) and that was closed again is anybody's until the server
that gets it listens, which takes Kafka some seconds: the next test's, another worker's or an
outgoing connection's. So these lie below the range from which the system chooses.
"""

import fcntl
import os
import socket
import tempfile
from itertools import count
from pathlib import Path

FIRST, NUM_PORTS = 20_000, 12_000
"""Linux chooses from 32768 on, others from 49152 on."""


class FreePorts:
    """None is given twice, nor by two processes of this machine while the first one lives.

    Thread-safe. Each is a byte of one file that the process has locked; the system unlocks it when
    the process ends, however it does.
    """

    def __init__(self, start: int = 0, file: Path | None = None) -> None:
        """`start`: how many ports to begin behind the first; `file`: of the locks."""
        own = Path(tempfile.gettempdir()) / f"cua-test-ports-{os.getuid()}"
        self._file = os.open(file or own, os.O_RDWR | os.O_CREAT, 0o600)
        self._start = start
        self._numbers = count()

    def take(self) -> int:
        """A TCP port of loopback on which nobody listens."""
        for number in self._numbers:
            if number == NUM_PORTS:
                break
            port = FIRST + (self._start + number) % NUM_PORTS
            if self._is_ours(port) and _is_free(port):
                return port
        message = f"all ports from {FIRST} to {FIRST + NUM_PORTS - 1} are taken"
        raise RuntimeError(message)

    def _is_ours(self, port: int) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except (BlockingIOError, PermissionError):
            return False
        return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


# Elsewhere in each process: a port just given up may have connections that are closing.
_PORTS = FreePorts(os.getpid())


def free_port() -> int:
    """A TCP port of loopback that nobody else gets while this process lives."""
    return _PORTS.take()
