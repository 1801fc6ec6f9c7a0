"""One process per training and host: a lock in the run's folder, released when it dies."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from producer.errors import CuaTrainError, UsageError


@contextmanager
def training_lock(folder: Path, name: str) -> Iterator[None]:
    """Hold the training's lock. CuaTrainError names the process that holds it.

    UsageError when the folder cannot be created.

    A folder that was made for the lock and got nothing else is removed again.
    """
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = (
            f"the folder {folder} of training {name!r} cannot be created: {error.strerror}; remove"
            " what is in its place, or choose another --log-path"
        )
        raise UsageError(message) from None
    path = folder / "lock"
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        holder = _holder(path)
        message = (
            f"training {name!r} is being trained on this host by {holder}; stop that process"
            " first, or choose another --training-name"
        )
        raise CuaTrainError(message) from None
    try:
        holder = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
        path.write_text(holder, encoding="utf-8")
        yield
    finally:
        # A run that was refused leaves nothing. Unlinked before the release: whoever has opened
        # the file meanwhile sees that it has no name any more and opens a new one.
        if is_new and [one.name for one in folder.glob("*")] == [path.name]:
            path.unlink()
            folder.rmdir()
        lock.release()


def _holder(path: Path) -> str:
    """Who holds the lock, for a person."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return f"process {int(content['pid'])}"
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return "another process"
