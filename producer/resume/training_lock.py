"""One process per training: a lock in the run's folder, and whether the last writer may be alive.

The lock is released when its process dies. Every process that holds it writes its source to a file
in the folder before it claims the training. If we hold the folder's lock, every source in that file
is therefore dead. Nothing else proves this: containers share host names and process ids, another
CUA_HOME has another lock, and so has a copied home, whose file names the original's sources. Each
line therefore names the file to which it was written.

    <run>/writers   source and file (device:inode) a line, with a tab between them
"""

import json
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from filelock import FileLock, Timeout

from producer.durable import sync_file
from producer.errors import CuaTrainError, LogBrokenError, TakenOverError, UsageError
from producer.log.stream_history import StreamHistory
from schemas.lock_holders import is_held_by_stopped

logger = logging.getLogger(__name__)


class TrainingLock:
    """The held lock of a training's folder."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        self._inode = path.stat().st_ino

    def check(self) -> None:
        """Raises TakenOverError if another process has taken the training over (--takeover)."""
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
    """Hold the training's lock. Raises CuaTrainError naming the process that holds it.

    `takeover` takes it from that process, which notices in `TrainingLock.check`. Raises UsageError
    if the folder or the lock in it is unusable. Removes a folder that was created for the lock and
    is otherwise empty.
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
        # The other process keeps its lock on the file, which no longer has a name.
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
        try:
            path.write_text(holder, encoding="utf-8")
        except OSError as error:
            message = f"the lock {path} of training {name!r} cannot be written: {error.strerror}"
            raise LogBrokenError(message) from None
        yield TrainingLock(path, name)
    finally:
        # A refused run leaves nothing behind. Unlink before releasing: a process that has opened
        # the file meanwhile sees that it has no name any more and opens a new one.
        if is_new and [path.name for path in folder.glob("*")] == [path.name]:
            path.unlink()
            folder.rmdir()
        lock.release()


def _holder(path: Path) -> str:
    """The lock's holder, for messages."""
    try:
        pid = int(json.loads(path.read_text(encoding="utf-8"))["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
    if is_held_by_stopped(path):
        return f"process {pid}, which is stopped (kill -CONT {pid}, or kill -9 {pid})"
    return f"process {pid}"


TAKEOVER_AFTER_S = 60.0
"""A heartbeat younger than this means that the training is still running."""
ENDED = frozenset({"completed", "failed", "cancelled"})
"""Statuses with which a writer ends a training."""


def refuse_active_writer(
    run_name: str,
    stream: StreamHistory,
    status: str | None,
    run_folder: Path,
    now: datetime,
    *,
    is_log_shared: bool,
) -> None:
    """Raises CuaTrainError if the training's last event is recent and its writer may be alive.

    The caller holds the lock of `run_folder`. A log that is not shared was copied with its home, so
    no process writes to the copy, whatever runs in the original.
    """
    owner = stream.position.source
    if status in ENDED or owner in _writers(run_folder, of_copied=not is_log_shared):
        return
    # The other host's clock may be ahead of ours.
    age = max(now - stream.events[-1].envelope.time, timedelta(0))
    if age < timedelta(seconds=TAKEOVER_AFTER_S):
        host = owner.split("/")[2] if owner.startswith("//") else owner
        message = (
            f"training {run_name!r} was alive on {host} {age.total_seconds():.0f} s ago ({owner},"
            " //host/pid/start, of another CUA_HOME or folder)"
        )
        ways = (
            "stop it there",
            f"wait {TAKEOVER_AFTER_S:.0f} s after its last heartbeat",
            "pass --takeover",
        )
        raise CuaTrainError(message, ways=ways)


def add_writer(run_folder: Path, source: str) -> None:
    """Add a source before its claim: whoever later gets the lock knows that the source is dead."""
    run_folder.mkdir(parents=True, exist_ok=True)
    path = _path(run_folder)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{source}\t{_identity(path)}\n")
    sync_file(path)


def _writers(run_folder: Path, *, of_copied: bool) -> frozenset[str]:
    """Sources written to this file; with `of_copied`, also to the file it is a copy of."""
    path = _path(run_folder)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        identity = _identity(path)
    except (FileNotFoundError, UnicodeDecodeError):
        return frozenset()
    named = (line.partition("\t") for line in lines)
    return frozenset(source for source, _, file in named if of_copied or file == identity)


def _identity(path: Path) -> str:
    """Identify a file; a copy has another identity. Raises FileNotFoundError."""
    status = path.stat()
    return f"{status.st_dev}:{status.st_ino}"


def _path(run_folder: Path) -> Path:
    return run_folder / "writers"
