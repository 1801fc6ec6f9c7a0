"""One process trains a training on one host.

An exclusive lock on a file in the run's folder, which dies with the process.
"""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from producer.errors import CuaTrainError


@contextmanager
def training_lock(folder: Path, name: str) -> Iterator[None]:
    """Hold the training; CuaTrainError names the process that has it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            message = (
                f"training {name!r} is being trained on this host by {holder}; stop that process"
                " first, or choose another --training-name"
            )
            raise CuaTrainError(message) from None
        file.seek(0)
        file.truncate()
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        file.flush()
        yield
