"""The projector: applies the log to the live tables, from their positions on, until it is stopped.

Outages of the database and the log are waited out; afterwards the tables' state is loaded again.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import psycopg2
from psycopg2.errors import LockNotAvailable

from consumers.database.connection import (
    WRITER_SETTINGS,
    Connection,
    connected,
    join_group,
    session_group,
)
from consumers.database.lease import LeaseTakenError, ProjectorLease, new_holder
from consumers.errors import (
    CuaProjectError,
    LimitExceededError,
    MismatchError,
    UnreachableError,
)
from consumers.fold.parse import parse_record
from consumers.log.reader import LogReader, TopicPartition
from consumers.projection.adoption import adopt_log
from consumers.projection.lock_watch import LockWatch
from consumers.projection.outage import Outage
from consumers.projection.pipeline import Pipeline
from consumers.projection.positions import (
    Positions,
    SupersededError,
    check_log,
    load_positions,
    start_positions,
)
from consumers.projection.redrive import Operator
from consumers.projection.schema import Committed, ProjectedSchema
from consumers.tables import PROJECTION_VERSION, SCHEMA

logger = logging.getLogger(__name__)

BATCH_RECORDS = 5_000
"""Per transaction: makes its fixed cost negligible, and is about 20 MB of memory."""
POLL_S = 0.2
"""How long a poll waits for records; the lease is renewed between polls."""
NEW_PARTITIONS_EVERY_S = 2.0
"""How often a projector looks for new partitions."""
LEASE_RETRY_S = 1.0
"""How often a waiting projector tries to take the lease."""
ONCE_LIMIT_S = 60.0
"""How long `run_once` waits out an outage, another projector or another session's lock."""
STALLED_S = 30.0
"""Processes of a parallel fill that commit nothing for so long have stopped."""


class ParallelFill(Protocol):
    """`rebuild.parallel.Parallel.fill`."""

    def __call__(
        self,
        url: str,
        schema: str,
        start: Positions,
        until: Positions,
        keep_going: Callable[[], bool],
        group: int | None = None,
    ) -> int:
        """Apply a long stretch of the log in several processes; 0 at once for a short one.

        Their sessions join `group`. Raises UnfinishedError.
        """
        ...


class UnfinishedError(CuaProjectError):
    """A process of a parallel fill failed; what all of them have committed stays."""


class _StoppedWaitingError(Exception):
    """A stop was requested while another session's lock was waited for."""


class OutdatedTablesError(MismatchError):
    """An older version filled the tables; they must be rebuilt."""


class Report(NamedTuple):
    """What a run did."""

    events: int
    seconds: float
    positions: dict[TopicPartition, int]


@dataclass(slots=True)
class _Run:
    """One call of `run_once` or `run_forever`."""

    stop: threading.Event
    outage: Outage
    limit_s: float | None = None
    """How long an outage is waited out; None: for ever."""
    until: Positions | None = None
    """Where to stop; None: nowhere."""
    committed: Committed = field(default_factory=Committed)
    error: tuple[str, float] | None = None
    """What had to be waited out last, and when; not yet stored with the lease."""

    def is_done(self) -> bool:
        """True once the target offsets are reached or a stop was requested."""
        if self.stop.is_set():
            return True
        positions = self.committed.positions
        return self.until is not None and all(
            positions.get(at, 0) >= end for at, end in self.until.items()
        )


class ProjectionLoop:
    """Keeps the tables of one database up to date with one log.

    Not thread-safe; the `stop` event may be set from any thread or signal handler.
    """

    def __init__(
        self,
        reader: LogReader,
        url: str,
        *,
        batch_records: int = BATCH_RECORDS,
        adopt: bool = False,
        parallel: ParallelFill | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`adopt`: continue on this log although the tables were made from another one.

        `parallel`: how to catch up when far behind. `clock`: seconds.
        """
        self._reader = reader
        self._url = url
        self._batch_records = batch_records
        self._adopt = adopt
        self._parallel = parallel
        self._clock = clock
        self._holder = new_holder()

    def run_once(
        self, limit_s: float = ONCE_LIMIT_S, stop: threading.Event | None = None
    ) -> Report:
        """Project up to the log's current end. UnreachableError after an outage of `limit_s`."""
        until = self._reader.end_offsets(self._reader.partitions())
        return self._run(_Run(stop or threading.Event(), Outage(self._clock), limit_s, until))

    def run_forever(self, stop: threading.Event) -> Report:
        """Project until `stop` is set, waiting out outages."""
        return self._run(_Run(stop, Outage(self._clock)))

    def _run(self, run: _Run) -> Report:
        started = self._clock()
        while not self._try_session(run):
            pass
        committed = run.committed
        return Report(committed.num_events, self._clock() - started, committed.positions)

    def _try_session(self, run: _Run) -> bool:
        """Whether the run is over; waits after a failure."""
        group = session_group(self._holder)
        with LockWatch(self._url, group) as watch:
            try:
                self._session(run, watch, group)
            except (
                psycopg2.OperationalError,
                psycopg2.InterfaceError,
                UnreachableError,
                LeaseTakenError,
            ) as error:
                reason = str(error).strip()
                if isinstance(error, LockNotAvailable):
                    reason = watch.reason or reason
                run.error = (reason, self._clock())
                self._check_limit(run, reason, isinstance(error, LockNotAvailable))
                run.stop.wait(run.outage.failed(reason))
                return run.stop.is_set()
            except _StoppedWaitingError:
                return True
        return run.is_done()

    def _check_limit(self, run: _Run, reason: str, is_lock: bool) -> None:  # noqa: FBT001  # one caller each
        """LimitExceededError or UnreachableError when `run_once` has waited long enough."""
        if run.limit_s is not None and run.outage.seconds > run.limit_s:
            message = f"gave up after {run.limit_s:.0f} s: {reason}"
            raise (LimitExceededError if is_lock else UnreachableError)(message) from None

    def _session(self, run: _Run, watch: LockWatch, group: int) -> None:
        """Project over two connections: one holds the lease and loads streams, one commits."""
        with connected(self._url, "run, lease", WRITER_SETTINGS) as lookups:
            join_group(lookups, group)
            lookups.autocommit = True
            try:
                with ProjectorLease(lookups, self._holder, self._clock) as lease:
                    if not self._wait_for_lease(lease, lookups, run):
                        return
                    with connected(self._url, "run", WRITER_SETTINGS) as connection:
                        join_group(connection, group)
                        self._project(run, watch, lease, connection, lookups)
            except LeaseTakenError:
                # Done nevertheless when the other projector has reached the target.
                if not run.is_done():
                    raise

    def _wait_for_lease(self, lease: ProjectorLease, lookups: Connection, run: _Run) -> bool:
        """False when the run was over before the lease was free."""
        said = ""
        while True:
            try:
                dead = lease.acquire()
            except LeaseTakenError as error:
                reason = str(error)
            else:
                if dead is not None:
                    logger.info(
                        "took the lease over from %s, silent for %.0f s", dead, dead.silent_s
                    )
                elif said:
                    logger.info("the other projector has stopped; this one projects now")
                return True
            if reason != said:
                logger.warning("%s", reason)
                said = reason
            with lookups.cursor() as cursor:
                run.committed.positions = load_positions(cursor, SCHEMA)
            if run.is_done():
                return False
            self._check_limit(run, reason, is_lock=True)
            if run.stop.wait(LEASE_RETRY_S):
                return False

    def _project(
        self,
        run: _Run,
        watch: LockWatch,
        lease: ProjectorLease,
        connection: Connection,
        lookups: Connection,
    ) -> None:
        if run.error is not None:
            reason, at = run.error
            lease.note_error(reason, self._clock() - at)
            run.error = None
        schema = ProjectedSchema(connection, SCHEMA, self._reader.log_id, committed=run.committed)
        schema.load()
        self._prepare(schema, lease)
        self._catch_up(schema, lease, run)

        def while_waiting() -> None:
            lease.renew()
            if watch.reason is not None:
                if run.stop.is_set():
                    raise _StoppedWaitingError
                self._check_limit(run, watch.reason, is_lock=True)

        with Pipeline(schema, lookups, while_waiting) as pipeline:
            self._follow(schema, lease, pipeline, run)

    def _prepare(self, schema: ProjectedSchema, lease: ProjectorLease) -> None:
        """Check that tables, code and log belong together; redrive what newer code can apply."""
        if schema.state.version != PROJECTION_VERSION:
            message = (
                f"the tables have projection version {schema.state.version}, this code"
                f" {PROJECTION_VERSION}; run `cua-project rebuild`"
            )
            is_older = schema.state.version < PROJECTION_VERSION
            raise OutdatedTablesError(message) if is_older else MismatchError(message)
        if self._adopt and schema.state.log_id not in {None, self._reader.log_id}:
            adopt_log(schema.connection, SCHEMA, self._reader, lease.renew)
        schema.load()
        check_log(schema.state, self._reader)
        if Operator(schema.connection, schema.schema).redrive_if_newer(lease.renew):
            schema.load()

    def _catch_up(self, schema: ProjectedSchema, lease: ProjectorLease, run: _Run) -> None:
        """Apply a long stretch in several processes."""
        if self._parallel is None:
            return

        def keep_going() -> bool:
            lease.renew()
            run.outage.over()
            return not run.stop.is_set()

        start = start_positions(run.committed.positions, self._reader)
        until = self._reader.end_offsets(list(start))
        try:
            run.committed.num_events += self._parallel(
                self._url, schema.schema, start, until, keep_going, session_group(self._holder)
            )
        except UnfinishedError as error:
            logger.warning("%s; continuing with one process", error)
        schema.load()

    def _follow(
        self, schema: ProjectedSchema, lease: ProjectorLease, pipeline: Pipeline, run: _Run
    ) -> None:
        """Apply batch after batch."""
        self._seek(schema)
        sought_at = self._clock()
        while not run.is_done():
            lease.renew()
            before = dict(run.committed.positions)
            records = self._reader.poll(self._batch_records, POLL_S)
            read_to = {
                at: offset
                for at, offset in self._reader.positions().items()
                if offset > schema.folded.get(at, 0)
            }
            try:
                if read_to:
                    pipeline.send([parse_record(record) for record in records], read_to)
                if len(records) < self._batch_records:
                    # Nothing more to read yet, so nothing to fold during the commit.
                    pipeline.settle()
                if self._clock() - sought_at > NEW_PARTITIONS_EVERY_S:
                    sought_at = self._clock()
                    if set(self._reader.partitions()) != set(self._reader.positions()):
                        pipeline.settle()
                        self._seek(schema)
            except SupersededError as error:
                logger.info("%s; continuing from the tables' positions", error)
                pipeline.abandon()
                schema.load()
                lease.renew(at_once=True)
                self._seek(schema)
            # A batch that was only sent is no success: the database may refuse every commit.
            if not records or run.committed.positions != before:
                run.outage.over()
        pipeline.settle()

    def _seek(self, schema: ProjectedSchema) -> None:
        if schema.log_id != self._reader.log_id:
            schema.log_id = self._reader.log_id
            check_log(schema.state, self._reader)
        self._reader.seek(start_positions(schema.committed.positions, self._reader))
