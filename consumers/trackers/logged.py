"""What a tracker was given already: a file that the next process continues from.

Written after the tracker took a measurement, so that a killed process gives it that one again,
under the same step, and leaves none out.
"""

import json
import os
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock, Timeout

from consumers.errors import CuaProjectError, UsageError


class Logged:
    """Names by run, one a line. One process at a time has the file; a context manager."""

    def __init__(self, folder: Path, target: str) -> None:
        """`folder`: of these files; `target`: the tracker and the place that it logs to."""
        digest = sha256(target.encode()).hexdigest()[:16]
        self._path = folder / f"{target.partition(':')[0]}-{digest}.jsonl"
        self._target = target
        self._lock = FileLock(self._path.with_suffix(".lock"))
        self._given: set[tuple[str, str]] = set()
        """(run, name)."""

    def __enter__(self) -> Self:
        """Read the file. CuaProjectError when another process has it; UsageError, unreadable."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            message = f"another process mirrors trainings to {self._target}; stop it first"
            raise CuaProjectError(message) from None
        except OSError as error:
            message = f"{self._path.parent} cannot be written: {error.strerror}"
            raise UsageError(message) from None
        try:
            self._read()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let others have the file."""
        self._lock.release()

    def has(self, run: str, name: str) -> bool:
        """Whether the tracker was given this measurement, or this end of the run."""
        return (run, name) in self._given

    def add(self, run: str, name: str) -> None:
        """Note that it was; on disk on return."""
        self._given.add((run, name))
        try:
            with self._path.open("ab") as file:
                file.write(json.dumps([run, name]).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            message = f"{self._path} cannot be written: {error.strerror}; free some space"
            raise CuaProjectError(message) from None

    def _read(self) -> None:
        try:
            # What follows the last line's end was cut off while it was written.
            *lines, torn = self._path.read_bytes().split(b"\n")
            self._given = {(str(run), str(name)) for run, name in map(json.loads, lines)}
            if torn:
                os.truncate(self._path, self._path.stat().st_size - len(torn))
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError):
            message = (
                f"{self._path} cannot be read; delete it to send every measurement to"
                f" {self._target} again"
            )
            raise UsageError(message) from None
