"""Wall and CPU time of a stretch of work.

This process's (children that ended included) and a PostgreSQL server's.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def server_cpu_s(postmaster: int) -> float:
    """CPU of a server since its start.

    The postmaster, its living processes, and those that ended (10 ms steps).
    """
    ended = None
    # A process that ends between the two readings would be in neither sum.
    while ended != (ended := _stat(postmaster)[13:15]):
        ticks = _server_ticks(postmaster)
    return ticks / TICKS_PER_S


def _server_ticks(postmaster: int) -> int:
    # utime, stime, and those of children that ended
    ticks = sum(int(value) for value in _stat(postmaster)[11:15])
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                child = _stat(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(child[1]) == postmaster:
                ticks += int(child[11]) + int(child[12])
    return ticks


def own_cpu_s() -> float:
    """CPU of this process, all threads, and of its children that ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


@dataclass
class Meter:
    """Measures what happens inside its `with`."""

    postmaster: int | None = None
    """The server whose CPU counts too."""
    seconds: float = 0.0
    own_s: float = 0.0
    server_s: float = 0.0

    def _read(self) -> tuple[float, float, float]:
        return (
            time.perf_counter(),
            own_cpu_s(),
            0.0 if self.postmaster is None else server_cpu_s(self.postmaster),
        )

    def __enter__(self) -> Self:
        self._began = self._read()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.seconds, self.own_s, self.server_s = (
            end - begin for end, begin in zip(self._read(), self._began, strict=True)
        )


def percentile(values: list[float], share: float) -> float:
    """The value that `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
