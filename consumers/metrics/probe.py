"""Looks at the log and the database for one scrape, without ever holding the scrape up."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import psycopg2

from consumers.database.connection import connected
from consumers.errors import CuaProjectError
from consumers.log.open import open_reader
from consumers.log.reader import LogReader, TopicPartition
from consumers.projection.positions import load_positions
from consumers.status.held import HeldCounts, count_held, count_held_by_kind
from consumers.status.lag import PartitionStatus, measure_lag
from consumers.status.parked import load_parked
from consumers.status.trainings import TrainingStatus, load_trainings
from consumers.tables import SCHEMA
from schemas.installation import Installation

STATEMENT_TIMEOUT_MS = 5000
WAIT_S = 4.0
"""Prometheus gives up on a scrape after ten seconds."""


@dataclass(frozen=True, slots=True)
class TablesSeen:
    """What the database said."""

    positions: Mapping[TopicPartition, int]
    num_events: int
    held: HeldCounts
    by_kind: Mapping[tuple[str, str], int]
    trainings: list[TrainingStatus]


@dataclass(frozen=True, slots=True)
class Seen:
    """One look. None: away, or not looked at yet."""

    tables: TablesSeen | None = None
    partitions: list[PartitionStatus] | None = None
    at: float = field(default_factory=time.monotonic)


class Probe:
    """Thread-safe. At most one look at a time, on a thread of its own."""

    def __init__(self, installation: Installation, url: Callable[[], str]) -> None:
        """`url`: of the database; asked for each look, because an embedded one may have moved."""
        self._installation = installation
        self._url = url
        self._reader: LogReader | None = None
        self._lock = threading.Lock()
        self._done: threading.Event | None = None
        self._seen = Seen()

    def look(self) -> Seen:
        """A new look, or after `WAIT_S` the last one, because a server does not answer."""
        with self._lock:
            if self._done is None:
                self._done = threading.Event()
                threading.Thread(target=self._look, name="probe", daemon=True).start()
            done = self._done
        if done.wait(WAIT_S):
            return self._seen
        # Nothing is known to be reachable as long as the look hangs.
        return Seen(at=self._seen.at)

    def _look(self) -> None:
        try:
            now = datetime.now(UTC)
            positions = self._positions()
            partitions = self._partitions(positions or {}, now)
            lag = partitions if positions is not None else None
            self._seen = Seen(
                None if positions is None else self._tables(positions, lag, now), partitions
            )
        finally:
            with self._lock:
                done, self._done = self._done, None
            assert done is not None  # noqa: S101  # set before the thread started
            done.set()

    def _positions(self) -> Mapping[TopicPartition, int] | None:
        try:
            with connected(self._url(), "metrics") as connection, connection.cursor() as cursor:
                cursor.execute(f"SET statement_timeout = {STATEMENT_TIMEOUT_MS}")
                return load_positions(cursor, SCHEMA)
        except (CuaProjectError, psycopg2.Error):
            return None

    def _partitions(
        self, positions: Mapping[TopicPartition, int], now: datetime
    ) -> list[PartitionStatus] | None:
        try:
            if self._reader is None:
                self._reader = open_reader(self._installation)
            return measure_lag(self._reader, positions, now)
        except CuaProjectError:
            if self._reader is not None:
                self._reader.close()
            self._reader = None
            return None

    def _tables(
        self,
        positions: Mapping[TopicPartition, int],
        partitions: list[PartitionStatus] | None,
        now: datetime,
    ) -> TablesSeen | None:
        lag_seconds = max((one.lag_seconds for one in partitions or []), default=0.0)
        try:
            with connected(self._url(), "metrics") as connection, connection.cursor() as cursor:
                cursor.execute(f"SET statement_timeout = {STATEMENT_TIMEOUT_MS}")
                parked = load_parked(cursor)
                cursor.execute(
                    f"SELECT coalesce(sum(num_events), 0)::bigint FROM {SCHEMA}.reader_position"
                )
                return TablesSeen(
                    positions,
                    cursor.fetchone()[0],
                    count_held(cursor),
                    count_held_by_kind(cursor),
                    load_trainings(cursor, now, lag_seconds=lag_seconds, parked=parked),
                )
        except (CuaProjectError, psycopg2.Error):
            return None
