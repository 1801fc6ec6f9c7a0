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
    """Measurements and ends by run. One process at a time has the file; a context manager."""

    def __init__(self, folder: Path, target: str) -> None:
        """`folder`: of these files; `target`: the tracker and the place that it logs to."""
        digest = sha256(target.encode()).hexdigest()[:16]
        self._path = folder / f"{target.partition(':')[0]}-{digest}.json"
        self._target = target
        self._lock = FileLock(self._path.with_suffix(".lock"))
        self._measured: dict[str, set[str]] = {}
        self._ends: dict[str, int] = {}

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

    def has(self, run: str, measurement: str) -> bool:
        """Whether the tracker was given this measurement."""
        return measurement in self._measured.get(run, ())

    def add(self, run: str, measurement: str) -> None:
        """Note that it was; on disk on return."""
        self._measured.setdefault(run, set()).add(measurement)
        self._write()

    def num_ends(self, run: str) -> int:
        """How often the tracker was told that the run had ended."""
        return self._ends.get(run, 0)

    def set_num_ends(self, run: str, number: int) -> None:
        """Note it; on disk on return."""
        self._ends[run] = number
        self._write()

    def _read(self) -> None:
        try:
            found = json.loads(self._path.read_text())
            self._measured = {run: set(names) for run, names in found["measured"].items()}
            self._ends = {run: int(number) for run, number in found["ends"].items()}
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            message = (
                f"{self._path} cannot be read; delete it to send every measurement to"
                f" {self._target} again"
            )
            raise UsageError(message) from None

    def _write(self) -> None:
        content = {
            "target": self._target,
            "measured": {run: sorted(names) for run, names in self._measured.items()},
            "ends": self._ends,
        }
        temporary = self._path.with_suffix(".part")
        try:
            with temporary.open("w") as file:
                json.dump(content, file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except OSError as error:
            message = f"{self._path} cannot be written: {error.strerror}; free some space"
            raise CuaProjectError(message) from None
