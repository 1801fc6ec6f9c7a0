"""One process per training and home: a lock in the run's folder, released when it dies."""

import json
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from producer.errors import CuaTrainError, TakenOverError, UsageError
from schemas.lock_holders import is_held_by_stopped

logger = logging.getLogger(__name__)


class TrainingLock:
    """The lock of a training's folder, held."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        self._inode = path.stat().st_ino

    def check(self) -> None:
        """TakenOverError when another process has taken the training over (--takeover)."""
        try:
            is_ours = self._path.stat().st_ino == self._inode
        except FileNotFoundError:
            is_ours = False
        if not is_ours:
            message = (
                f"training {self._name!r} was taken over by {_holder(self._path)}; this process"
                " saves nothing more"
            )
            raise TakenOverError(message)


@contextmanager
def training_lock(folder: Path, name: str, *, takeover: bool = False) -> Iterator[TrainingLock]:
    """Hold the training's lock. CuaTrainError names the process that holds it.

    `takeover`: take it from that process, which finds out by `TrainingLock.check`. UsageError when
    the folder or the lock in it cannot be used. A folder that was made for the lock and got nothing
    else is removed again.
    """
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"the folder {folder} of training {name!r} cannot be created: {error.strerror}"
        raise UsageError(
            message, ways=("remove what is in its place", "choose another --log-path")
        ) from None
    path = folder / "lock"
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        holder = _holder(path)
        if not takeover:
            message = f"training {name!r} is being trained on this host by {holder}"
            ways = (
                "stop that process first",
                "pass --takeover",
                "choose another --training-name",
            )
            raise CuaTrainError(message, ways=ways) from None
        logger.warning("taking training %r over from %s", name, holder)
        # The other process keeps the lock of a file without a name.
        path.unlink(missing_ok=True)
        lock.acquire()
    except OSError as error:
        message = (
            f"the lock {path} of training {name!r} cannot be used: {error.strerror}; make it yours"
            " (chown), or remove it when no process trains under this name"
        )
        raise UsageError(message) from None
    try:
        holder = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
        path.write_text(holder, encoding="utf-8")
        yield TrainingLock(path, name)
    finally:
        # A run that was refused leaves nothing. Unlinked before the release: whoever has opened
        # the file meanwhile sees that it has no name any more and opens a new one.
        if is_new and [path.name for path in folder.glob("*")] == [path.name]:
            path.unlink()
            folder.rmdir()
        lock.release()


def _holder(path: Path) -> str:
    """Who holds the lock, for a person."""
    try:
        pid = int(json.loads(path.read_text(encoding="utf-8"))["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
    if is_held_by_stopped(path):
        return f"process {pid}, which is stopped (kill -CONT {pid}, or kill -9 {pid})"
    return f"process {pid}"
