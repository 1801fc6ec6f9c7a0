"""Looks at the log and the database for one scrape, without ever holding the scrape up.

Each is looked at on a thread of its own, so that the silence of one is not taken for the other's.
"""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswerError
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, TypeVar

import psycopg2

from consumers.database.connection import connected
from consumers.errors import CuaProjectError
from consumers.log.open import open_reader
from consumers.log.reader import LogReader, TopicPartition
from consumers.log.waiting import Waiting, read_waiting
from consumers.projection.positions import load_positions
from consumers.status.gaps import load_waiting
from consumers.status.lag import PartitionStatus, measure_lag
from consumers.status.parked import load_parked
from consumers.status.trainings import TrainingStatus, load_trainings
from consumers.status.unapplied import UnappliedCounts, count_unapplied, count_unapplied_by_kind
from consumers.tables import SCHEMA
from schemas.installation import Installation

STATEMENT_TIMEOUT_MS = 5000
WAIT_S = 4.0
"""Prometheus gives up on a scrape after ten seconds."""
FOR_POSITIONS, FOR_LAG = 0.25, 0.75
"""Parts of it: the log waits for the positions in the tables, without which only its end is known;
the tables wait for the lag, because looking for the oldest record may take two seconds."""

Positions = Mapping[TopicPartition, int]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TablesSeen:
    """The error of the database."""

    positions: Positions
    num_events: int
    unapplied: UnappliedCounts
    by_kind: Mapping[tuple[str, str], int]
    trainings: list[TrainingStatus]
    gap_seconds: float


@dataclass(frozen=True, slots=True)
class LogSeen:
    """The partitions of the log."""

    ends: Positions
    partitions: list[PartitionStatus] | None
    """None: the positions in the tables, without which there is no lag, did not come in time."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look. None: away, or not looked at yet."""

    tables: TablesSeen | None = None
    log: LogSeen | None = None
    waiting: Waiting | None = None
    """Of this machine's spool."""


@dataclass(frozen=True, slots=True)
class _Exchange:
    """What the two looks of one scrape tell each other."""

    now: datetime
    waiting: Waiting | None
    positions: "Future[Positions | None]" = field(default_factory=Future)
    partitions: "Future[list[PartitionStatus] | None]" = field(default_factory=Future)


class _Look(Generic[T]):
    """One kind of look, on a thread of its own; at most one at a time. Thread-safe."""

    def __init__(self, look: Callable[[_Exchange], T], name: str) -> None:
        self._look = look
        self._name = name
        self._lock = threading.Lock()
        self._answer: Future[T] | None = None

    def ask(self, exchange: _Exchange) -> "Future[T]":
        """The answer of a new look, or of the one that is still under way."""
        with self._lock:
            if self._answer is None or self._answer.done():
                self._answer = Future()
                threading.Thread(
                    target=self._run, args=(self._answer, exchange), name=self._name, daemon=True
                ).start()
            return self._answer

    def finish(self) -> None:
        """Wait for the look that is under way."""
        if self._answer is not None:
            self._answer.exception()

    def _run(self, answer: "Future[T]", exchange: _Exchange) -> None:
        try:
            answer.set_result(self._look(exchange))
        except BaseException as error:  # noqa: BLE001  # the thread's boundary: `look` raises it
            answer.set_exception(error)


class Probe:
    """Thread-safe."""

    def __init__(
        self, installation: Installation, url: Callable[[], str], wait_s: float = WAIT_S
    ) -> None:
        """`url`: of the database; asked for each look, because an embedded one may have moved.

        `wait_s`: how long a look takes at most.
        """
        self._installation = installation
        self._url = url
        self._wait_s = wait_s
        self._reader: LogReader | None = None
        self._log_id: str | None = None
        """Of the last look; it stays while the log is away."""
        self._lag_seconds = 0.0
        """As last measured: without it, trainings whose events wait would count as silent."""
        self._log = _Look(self._look_at_log, "probe, log")
        self._database = _Look(self._look_at_database, "probe, database")

    def look(self) -> Seen:
        """A new look; whatever has not answered in time is away."""
        now = datetime.now(UTC)
        waiting = self._look_at_spool(now)
        exchange = _Exchange(now, waiting)
        deadline = time.monotonic() + self._wait_s
        tables, log = self._database.ask(exchange), self._log.ask(exchange)
        return Seen(_answered(tables, deadline), _answered(log, deadline), waiting)

    def close(self) -> None:
        """Wait for what is under way, and release the log; nothing may look meanwhile."""
        self._log.finish()
        self._database.finish()
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _look_at_spool(self, now: datetime) -> Waiting | None:
        if self._installation.kafka_bootstrap_servers is None:
            return Waiting(0, 0.0)
        try:
            return read_waiting(self._installation.local_log_path, self._log_id, now)
        except CuaProjectError:
            return None

    def _look_at_log(self, exchange: _Exchange) -> LogSeen | None:
        partitions = None
        try:
            if self._reader is None:
                self._reader = open_reader(self._installation)
            self._log_id = self._reader.log_id
            positions = _within(exchange.positions, FOR_POSITIONS * self._wait_s)
            if positions is None:
                # Measured from the beginning, every record would lag, and those deleted long ago
                # would be gone.
                return LogSeen(self._reader.end_offsets(self._reader.partitions()), None)
            partitions = measure_lag(self._reader, positions, exchange.now)
        except CuaProjectError:
            if self._reader is not None:
                self._reader.close()
            self._reader = None
            return None
        finally:
            exchange.partitions.set_result(partitions)
        ends = {TopicPartition(at.topic, at.partition): at.end for at in partitions}
        return LogSeen(ends, partitions)

    def _look_at_database(self, exchange: _Exchange) -> TablesSeen | None:
        positions: Positions | None = None
        try:
            with connected(self._url(), "metrics") as connection, connection.cursor() as cursor:
                cursor.execute(f"SET statement_timeout = {STATEMENT_TIMEOUT_MS}")
                positions = load_positions(cursor, SCHEMA)
        except (CuaProjectError, psycopg2.Error):
            return None
        finally:
            exchange.positions.set_result(positions)
        partitions = _within(exchange.partitions, FOR_LAG * self._wait_s)
        if partitions is not None:
            self._lag_seconds = max((at.lag_seconds for at in partitions), default=0.0)
        lag_seconds = self._lag_seconds
        if exchange.waiting is not None:
            lag_seconds = max(lag_seconds, exchange.waiting.seconds)
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
                    count_unapplied(cursor),
                    count_unapplied_by_kind(cursor),
                    load_trainings(
                        cursor,
                        exchange.now,
                        lag_seconds=lag_seconds,
                        parked=parked,
                        installation=self._installation,
                    ),
                    load_waiting(cursor).seconds(exchange.now),
                )
        except (CuaProjectError, psycopg2.Error):
            return None


def _answered(answer: "Future[T | None]", deadline: float) -> T | None:
    return _within(answer, max(0.0, deadline - time.monotonic()))


def _within(answer: "Future[T | None]", limit_s: float) -> T | None:
    """None: there is no answer yet."""
    try:
        return answer.result(limit_s)
    except NoAnswerError:
        return None
