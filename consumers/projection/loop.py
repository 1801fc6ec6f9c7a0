"""The projector: applies the log to the live tables, from their positions on, until it is stopped.

Outages of the database and the log are waited out; afterwards the tables' state is loaded again.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import psycopg2

from consumers.database.connection import Connection, connected
from consumers.database.lease import LeaseTakenError, ProjectorLease, new_holder
from consumers.errors import CuaProjectError, MismatchError, UnreachableError
from consumers.fold.parse import parse_record
from consumers.log.reader import LogReader, TopicPartition
from consumers.projection.outage import Outage
from consumers.projection.pipeline import Pipeline
from consumers.projection.positions import (
    Positions,
    SupersededError,
    adopt_log,
    check_log,
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
"""How often an idle projector looks for new partitions."""
ONCE_LIMIT_S = 60.0
"""How long `run_once` waits out an outage of the database, the log or another projector."""

ParallelFill = Callable[[str, str, Positions, Positions, Callable[[], bool]], int]
"""`rebuild.parallel.Parallel.fill`: given (url, schema, start, until, keep_going), applies a
long stretch of the log in several processes and returns the number of events, or 0 at once for a
short one. Raises UnfinishedError."""


class UnfinishedError(CuaProjectError):
    """A process of a parallel fill failed; what all of them have committed stays."""


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
        try:
            self._session(run)
        except (
            psycopg2.OperationalError,
            psycopg2.InterfaceError,
            UnreachableError,
            LeaseTakenError,
        ) as error:
            reason = str(error).strip()
            if run.limit_s is not None and run.outage.seconds > run.limit_s:
                message = f"gave up after {run.limit_s:.0f} s: {reason}"
                raise UnreachableError(message) from None
            run.stop.wait(run.outage.failed(reason))
            return run.stop.is_set()
        return run.is_done()

    def _session(self, run: _Run) -> None:
        """Project over two connections: one commits, one holds the lease and loads streams."""
        with (
            connected(self._url, "run") as connection,
            connected(self._url, "run, lease") as lookups,
        ):
            lookups.autocommit = True
            schema = ProjectedSchema(
                connection, SCHEMA, self._reader.log_id, committed=run.committed
            )
            schema.load()
            try:
                with ProjectorLease(lookups, self._holder, self._clock) as lease:
                    self._prepare(schema)
                    self._catch_up(schema, lease, run)
                    self._follow(schema, lease, lookups, run)
            except LeaseTakenError:
                # Done nevertheless when the other projector has reached the target.
                if not run.is_done():
                    raise

    def _prepare(self, schema: ProjectedSchema) -> None:
        """Check that tables, code and log belong together; redrive what newer code can apply."""
        self._check_version(schema)
        with schema.connection, schema.connection.cursor() as cursor:
            if self._adopt and schema.state.log_id not in {None, self._reader.log_id}:
                adopt_log(cursor, SCHEMA, self._reader.log_id)
        schema.load()
        check_log(schema.state, self._reader)
        if Operator(schema.connection, schema.schema).redrive_if_newer():
            schema.load()

    def _check_version(self, schema: ProjectedSchema) -> None:
        """MismatchError when another version of the code filled the tables."""
        if schema.state.version != PROJECTION_VERSION:
            is_older = schema.state.version < PROJECTION_VERSION
            helps = "run `cua-project rebuild`" if is_older else "install the newer cua-train"
            message = (
                f"the tables have projection version {schema.state.version}, this code"
                f" {PROJECTION_VERSION}; {helps}"
            )
            raise OutdatedTablesError(message) if is_older else MismatchError(message)

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
                self._url, schema.schema, start, until, keep_going
            )
        except UnfinishedError as error:
            logger.warning("%s; continuing with one process", error)
        schema.load()

    def _follow(
        self, schema: ProjectedSchema, lease: ProjectorLease, lookups: Connection, run: _Run
    ) -> None:
        """Apply batch after batch."""
        self._seek(schema)
        sought_at = self._clock()
        with Pipeline(schema, lookups) as pipeline:
            while not run.is_done():
                lease.renew()
                before = dict(run.committed.positions)
                records = self._reader.poll(self._batch_records, POLL_S)
                try:
                    if records:
                        pipeline.send([parse_record(record) for record in records])
                    if len(records) < self._batch_records:
                        # Nothing more to read yet, so nothing to fold during the commit.
                        pipeline.settle()
                except SupersededError as error:
                    logger.info("%s; continuing from the tables' positions", error)
                    pipeline.abandon()
                    schema.load()
                    self._check_version(schema)
                    lease.renew(at_once=True)
                    self._seek(schema)
                if not records and self._clock() - sought_at > NEW_PARTITIONS_EVERY_S:
                    self._seek(schema)
                    sought_at = self._clock()
                # A batch that was only sent is no success: the database may refuse every commit.
                if not records or run.committed.positions != before:
                    run.outage.over()
            pipeline.settle()

    def _seek(self, schema: ProjectedSchema) -> None:
        if schema.log_id != self._reader.log_id:
            schema.log_id = self._reader.log_id
            check_log(schema.state, self._reader)
        self._reader.seek(start_positions(schema.committed.positions, self._reader))
