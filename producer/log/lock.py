"""A file lock that ends with its process, so that a kill -9 leaves nothing locked.

Knows nothing of what it guards.
"""

import fcntl
import os
from pathlib import Path
from types import TracebackType


class FileLock:
    """An exclusive flock. Held by at most one FileLock object on this host.

    Released by the kernel when the process dies.

    Not thread-safe: one owner takes and releases it. The file stays (removing it would let two
    processes hold two inodes).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def try_take(self) -> bool:
        """Take it if it is free; whether it is held now."""
        return self._take(fcntl.LOCK_EX | fcntl.LOCK_NB)

    def take(self) -> None:
        """Take it, waiting as long as another has it."""
        self._take(fcntl.LOCK_EX)

    def _take(self, operation: int) -> bool:
        if self._descriptor is not None:
            return True
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, operation)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Let it go; twice is once."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> "FileLock":
        self.take()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()
