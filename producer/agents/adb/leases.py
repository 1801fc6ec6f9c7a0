"""Assigns phones to episodes: one episode at a time, across all processes of this user.

A lease is a file lock, so it ends with its process.
"""

import contextlib
import os
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from filelock import FileLock, Timeout

from producer.agents.adb.server import READY, AdbServer, NoServerError, describe
from producer.environments.environment import EnvironmentFailedError

WAIT_S = 45.0
"""How long to wait for a free phone: longer than a hung call can hold one, and longer than a
reconnect over the network takes."""
AGAIN_S = 0.5


class Lease:
    """A phone that is reserved until `end`."""

    def __init__(self, serial: str, lock: FileLock) -> None:
        self.serial = serial
        self._lock = lock

    def end(self) -> None:
        """Release the phone. Idempotent."""
        with contextlib.suppress(OSError):
            os.utime(self._lock.lock_file)
        self._lock.release()


def lease(server: AdbServer, serials: Sequence[str], wait_s: float = WAIT_S) -> Lease:
    """Lease the phone that has been idle longest among those that are connected and free.

    Raises EnvironmentFailedError if there is none after `wait_s`.
    """
    until_s = time.monotonic() + wait_s
    while True:
        found = _first_free(server, serials)
        if isinstance(found, Lease):
            return found
        if time.monotonic() >= until_s:
            raise EnvironmentFailedError(found)
        time.sleep(AGAIN_S)


def _first_free(server: AdbServer, serials: Sequence[str]) -> Lease | str:
    """A lease, or the reason why there is none."""
    try:
        states = server.states()
    except NoServerError as error:
        return str(error)
    problems = []
    for serial in sorted(serials, key=lambda one: _idle_since(server, one)):
        if states.get(serial) != READY:
            problems.append(describe(serial, states.get(serial)))
        elif (found := _try(server, serial)) is not None:
            return found
        else:
            problems.append(f"phone {serial} is used by another episode")
    return "; ".join(problems)


def busy(server: AdbServer, serials: Sequence[str]) -> Iterator[str]:
    """Yield the serials of phones that are in use."""
    for serial in serials:
        found = _try(server, serial)
        if found is None:
            yield serial
        else:
            found.end()


def _try(server: AdbServer, serial: str) -> Lease | None:
    lock = FileLock(_path(server, serial), thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return None
    return Lease(serial, lock)


def _idle_since(server: AdbServer, serial: str) -> float:
    try:
        return _path(server, serial).stat().st_mtime
    except OSError:
        return 0.0


def _path(server: AdbServer, serial: str) -> Path:
    folder = Path(tempfile.gettempdir()) / f"cua-train-phones-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / sha256(f"{_resolved(server.address)} {serial}".encode()).hexdigest()[:32]


@cache
def _resolved(address: str) -> str:
    """The address with the host's IP, because `localhost` and 127.0.0.1 have the same phones."""
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError):
        host = socket.gethostbyname(host)
    return f"{host}:{port}"
