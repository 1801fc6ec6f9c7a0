"""Follows a sink until its rows are in: time, CPU of its processes and of PostgreSQL.

The whole is measured, and its second half: from about half of the rows to the end. The end is the
last change of PostgreSQL's write-ahead log before every row was there, or of a sink that ends by
itself, when it ended.
"""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psycopg2

from consumers.database.location import libpq_url
from consumers.tables.base import SCHEMA
from tests.bench.meter import TICKS_PER_S, server_cpu_s
from tests.bench.peer_setup import PeerError

POLL_S = 0.2
QUIET_S = 0.7
"""Without a change of the write-ahead log, before the rows are counted."""
STALLED_S = 60.0


class Stretch(NamedTuple):
    """Of a sink's work, from its start or from half of it, to its end."""

    rows: int
    seconds: float
    client_s: float
    """CPU-seconds of the sink's processes."""
    server_s: float
    """CPU-seconds of PostgreSQL."""
    other_s: float
    """CPU-seconds of everything else on the machine, Kafka included."""

    @property
    def rows_per_s(self) -> float:
        """On the clock."""
        return self.rows / self.seconds

    @property
    def cpu_s_per_1000(self) -> float:
        """CPU-seconds per 1,000 rows, the sink's and PostgreSQL's."""
        return (self.client_s + self.server_s) / self.rows * 1000


class Spent(NamedTuple):
    """What a sink took."""

    whole: Stretch
    warm: Stretch | None
    """None: too short to tell."""


class _Point(NamedTuple):
    at: float
    client_s: float
    server_s: float
    busy_s: float

    def until(self, end: "_Point", rows: int) -> Stretch:
        client, server = end.client_s - self.client_s, end.server_s - self.server_s
        other = end.busy_s - self.busy_s - client - server
        return Stretch(rows, end.at - self.at, client, server, other)


class SinkMeter:
    """Measures one sink on one database; a context manager."""

    def __init__(self, url: str, postmaster: int, rows: Mapping[str, int]) -> None:
        """`rows`: by table, at the end."""
        self._connection: Any = psycopg2.connect(libpq_url(url))
        self._connection.autocommit = True
        self._postmaster = postmaster
        self._own_pid = self._connection.info.backend_pid
        self._rows = dict(rows)

    def __enter__(self) -> "SinkMeter":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def follow(
        self,
        begin: Callable[[], Sequence["subprocess.Popen[bytes]"]],
        check: Callable[[], None],
        *,
        running: Sequence["subprocess.Popen[bytes]"] = (),
        ends_by_itself: bool,
    ) -> Spent:
        """From `begin`, which starts the sink's processes, to its end.

        `check` raises PeerError for a sink that failed; `running`: its processes that run already.
        """
        total = sum(self._rows.values())
        start = self._point(running)
        processes = [*running, *begin()]
        middle: tuple[_Point, int] | None = None
        log_end, changed, counted = self._log_end(), start, start.at
        while True:
            time.sleep(POLL_S)
            point = self._point(processes)
            if (now := self._log_end()) != log_end:
                log_end, changed = now, point
            if middle is None and self._statistics() >= total / 2:
                middle = point, self._count()
            if ends_by_itself:
                if all(process.poll() is not None for process in processes):
                    changed = self._point(processes)
                    break
                continue
            if point.at - max(changed.at, counted) < QUIET_S:
                continue
            counted = point.at
            if self._count() == total:
                break
            check()
            if point.at - changed.at > STALLED_S:
                message = f"no row was written for {STALLED_S:.0f} s; {self._count()} of {total}"
                raise PeerError(message)
        whole = start.until(changed, total)
        if middle is None or middle[1] >= total:
            return Spent(whole, None)
        return Spent(whole, middle[0].until(changed, total - middle[1]))

    def _point(self, processes: Sequence["subprocess.Popen[bytes]"]) -> _Point:
        # A process that ended counts among the children that were waited for.
        times = os.times()
        client = times.children_user + times.children_system
        client += sum(server_cpu_s(process.pid) for process in processes if process.poll() is None)
        own = _cpu_s(Path(f"/proc/{self._own_pid}/stat"))
        return _Point(
            time.perf_counter(), client, server_cpu_s(self._postmaster) - own, machine_cpu_s()
        )

    def _one(self, query: str) -> Any:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchone()[0]

    def _log_end(self) -> str:
        return str(self._one("SELECT pg_current_wal_insert_lsn()"))

    def _statistics(self) -> int:
        """Rows inserted, up to a second ago."""
        names = ", ".join(f"'{name}'" for name in self._rows)
        return int(
            self._one(
                "SELECT coalesce(sum(n_tup_ins), 0) FROM pg_stat_user_tables"
                f" WHERE schemaname = '{SCHEMA}' AND relname IN ({names})"
            )
        )

    def _count(self) -> int:
        counts = [f'(SELECT count(*) FROM "{SCHEMA}"."{name}")' for name in self._rows]
        return int(self._one("SELECT " + " + ".join(counts)))


def _cpu_s(stat: Path) -> float:
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def machine_cpu_s() -> float:
    """Not idle, not waiting: user, nice, system, interrupts."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return sum(int(fields[number]) for number in (1, 2, 3, 6, 7)) / TICKS_PER_S
