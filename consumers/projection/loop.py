"""The projector: applies the log to the live tables, from their positions on, until it is stopped.

Outages of the database and the log are waited out; afterwards the tables' state is loaded again.
"""

import logging
import threading
import time
from collections.abc import Callable
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
from consumers.database.lease import LeaseTakenError, ProjectorLease, give_back, new_holder
from consumers.errors import CuaProjectError, MismatchError, UnreachableError
from consumers.fold.parse import parse_records
from consumers.log.reader import LogReader, TopicPartition
from consumers.projection.activity import Activity
from consumers.projection.adoption import adopt_log
from consumers.projection.catching_up import CatchingUp
from consumers.projection.lock_watch import LockWatch
from consumers.projection.operators import Operator
from consumers.projection.outage import Outage
from consumers.projection.pipeline import Pipeline
from consumers.projection.positions import (
    Positions,
    SupersededError,
    check_last_records,
    check_log,
    load_last_records,
    load_positions,
    start_positions,
)
from consumers.projection.projection_run import Run, wait_for_lease
from consumers.projection.schema import ProjectedSchema
from consumers.projection.unapplied_records import count_parked_since
from consumers.tables import PROJECTION_VERSION, SCHEMA

logger = logging.getLogger(__name__)

BATCH_RECORDS = 5_000
"""Per transaction: makes its fixed cost negligible, and is about 20 MB of memory."""
POLL_S = 0.2
"""How long a poll waits for records; the lease is renewed between polls."""
NEW_PARTITIONS_EVERY_S = 2.0
"""How often a projector looks for new partitions."""
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
    parked: int = 0
    """Records that were parked."""


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
        activity: Activity | None = None,
    ) -> None:
        """`adopt`: continue on this log although the tables were made from another one.

        `parallel`: how to catch up when far behind. `clock`: seconds. `activity`: told what
        happens.
        """
        self._reader = reader
        self._url = url
        self._batch_records = batch_records
        self._adopt = adopt
        self._parallel = parallel
        self._clock = clock
        self._holder = new_holder()
        self._keeps_lease = False
        """Over an outage of the log: after it this process goes on as the holder."""
        self._activity = activity or Activity(clock)

    def run_once(
        self, limit_s: float = ONCE_LIMIT_S, stop: threading.Event | None = None
    ) -> Report:
        """Project up to the log's current end. UnreachableError after an outage of `limit_s`."""
        until = self._reader.end_offsets(self._reader.partitions())
        return self._run(
            Run(stop or threading.Event(), Outage(self._clock), self._activity, limit_s, until)
        )

    def run_forever(self, stop: threading.Event) -> Report:
        """Project until `stop` is set, waiting out outages."""
        return self._run(Run(stop, Outage(self._clock), self._activity))

    def _run(self, run: Run) -> Report:
        started = self._clock()
        self._activity.began()
        try:
            while not self._try_session(run):
                pass
        finally:
            if self._keeps_lease:
                give_back(self._url, self._holder)
        committed = run.committed
        seconds = self._clock() - started
        return Report(committed.num_events, seconds, committed.positions, run.num_parked)

    def _try_session(self, run: Run) -> bool:
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
                if isinstance(error, LeaseTakenError):
                    self._activity.stood_by(reason)
                else:
                    self._activity.failed(reason)
                run.check_limit(reason, is_lock=isinstance(error, LockNotAvailable))
                run.stop.wait(run.outage.failed(reason))
                return run.stop.is_set()
            except SupersededError as error:
                # The next session asks for the lease first, which another projector may have.
                logger.debug("%s; continuing from the tables' positions", error)
            except _StoppedWaitingError:
                return True
        return run.is_done()

    def _session(self, run: Run, watch: LockWatch, group: int) -> None:
        """Project over two connections: one holds the lease and loads streams, one commits."""
        with connected(self._url, "run, lease", WRITER_SETTINGS) as lookups:
            join_group(lookups, group)
            lookups.autocommit = True
            self._keeps_lease = False
            try:
                with ProjectorLease(lookups, self._holder, self._clock) as lease:
                    if not wait_for_lease(lease, lookups, run):
                        return
                    with connected(self._url, "run", WRITER_SETTINGS) as connection:
                        join_group(connection, group)
                        self._project(run, watch, lease, connection, lookups)
            except UnreachableError:
                self._keeps_lease = True
                raise
            except LeaseTakenError:
                # Done nevertheless when the other projector has reached the target.
                if not run.is_done():
                    raise

    def _project(
        self,
        run: Run,
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
        run.start = dict(run.committed.positions) if run.start is None else run.start
        self._prepare(schema, lease)
        start = start_positions(run.committed.positions, self._reader)
        with schema.connection, schema.connection.cursor() as cursor:
            check_last_records(load_last_records(cursor, SCHEMA), self._reader)
        until = self._reader.end_offsets(list(start))
        with CatchingUp(
            start, until, lease.note_caught_up, announces=run.until is None
        ) as catching_up:
            if run.until is None and not run.is_announced:
                behind = f"{catching_up.num_records:,} records behind"
                kind = "local log" if self._reader.kind == "local" else "log on Kafka"
                logger.info("projecting the %s into the tables, %s", kind, behind)
                run.is_announced = True
            self._catch_up(schema, lease, run, lookups, catching_up)
            self._pipe(run, watch, schema, lease, lookups, catching_up)
        with lookups.cursor() as cursor:
            run.num_parked = count_parked_since(cursor, SCHEMA, run.start)

    def _pipe(
        self,
        run: Run,
        watch: LockWatch,
        schema: ProjectedSchema,
        lease: ProjectorLease,
        lookups: Connection,
        catching_up: CatchingUp,
    ) -> None:
        def while_waiting() -> None:
            lease.renew()
            if watch.reason is not None:
                self._activity.failed(watch.reason)
                if run.stop.is_set():
                    raise _StoppedWaitingError
                run.check_limit(watch.reason, is_lock=True)

        with Pipeline(schema, lookups, while_waiting) as pipeline:
            self._follow(schema, lease, pipeline, run, catching_up)

    def _prepare(self, schema: ProjectedSchema, lease: ProjectorLease) -> None:
        """Check that tables, code and log belong together; retry what newer code can apply."""
        self._check_version(schema)
        if self._adopt and schema.state.log_id not in {None, self._reader.log_id}:
            adopt_log(schema.connection, SCHEMA, self._reader, lease.renew)
        schema.load()
        check_log(schema.state, self._reader)
        if Operator(schema.connection, schema.schema).retry_if_newer(lease.renew):
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

    def _catch_up(
        self,
        schema: ProjectedSchema,
        lease: ProjectorLease,
        run: Run,
        lookups: Connection,
        catching_up: CatchingUp,
    ) -> None:
        """Apply a long stretch in several processes."""
        if self._parallel is None:
            return
        moved_at = self._clock()
        positions = run.committed.positions

        def keep_going() -> bool:
            nonlocal moved_at, positions
            lease.renew()
            with lookups.cursor() as cursor:
                now = load_positions(cursor, SCHEMA)
            if now != positions:
                positions, moved_at = now, self._clock()
                catching_up.reached(positions)
                run.outage.over()
                self._activity.worked(run.committed.num_events, has_committed=True)
            elif self._clock() - moved_at > STALLED_S:
                message = f"no process has committed anything for {STALLED_S:.0f} s"
                raise UnfinishedError(message)
            return not run.stop.is_set()

        try:
            run.committed.num_events += self._parallel(
                self._url,
                schema.schema,
                catching_up.start,
                catching_up.until,
                keep_going,
                session_group(self._holder),
            )
        except UnfinishedError as error:
            logger.warning("%s; continuing with one process", error)
        schema.load()

    def _follow(
        self,
        schema: ProjectedSchema,
        lease: ProjectorLease,
        pipeline: Pipeline,
        run: Run,
        catching_up: CatchingUp,
    ) -> None:
        """Apply batch after batch."""
        self._seek(schema)
        sought_at = self._clock()
        while not run.is_done():
            lease.renew()
            before = dict(run.committed.positions)
            records = self._reader.poll(self._batch_records, POLL_S)
            read_to = self._read_to(schema)
            try:
                if read_to:
                    pipeline.send(parse_records(records, self._reader.log_id), read_to)
                if len(records) < self._batch_records:
                    # Nothing more to read yet, so nothing to fold during the commit.
                    pipeline.settle()
                if self._clock() - sought_at > NEW_PARTITIONS_EVERY_S:
                    sought_at = self._clock()
                    if set(self._reader.partitions()) != set(self._reader.positions()):
                        pipeline.settle()
                        self._seek(schema)
            except SupersededError as error:
                logger.debug("%s; continuing from the tables' positions", error)
                pipeline.abandon()
                # Whoever moved the positions may have it, and move them again meanwhile.
                lease.renew(at_once=True)
                self._apply_next(schema, lease)
            catching_up.reached(run.committed.positions)
            # A batch that was only sent is no success: the database may refuse every commit.
            has_committed = run.committed.positions != before
            if self._reader.problem is not None:
                self._activity.failed(self._reader.problem)
                run.outage.failed(self._reader.problem)
                run.check_limit(self._reader.problem, is_lock=False)
            elif not records or has_committed:
                run.outage.over()
                self._activity.worked(run.committed.num_events, has_committed=has_committed)
        pipeline.settle()
        catching_up.reached(run.committed.positions)

    def _apply_next(self, schema: ProjectedSchema, lease: ProjectorLease) -> None:
        """Load the tables' state, and apply one batch before anybody can change it again."""
        schema.load_and_hold()
        self._check_version(schema)
        # A rebuild on another log may be what changed it.
        check_log(schema.state, self._reader)
        with schema.connection.cursor() as cursor:
            check_last_records(load_last_records(cursor, schema.schema), self._reader)
        self._seek(schema)
        records = self._reader.poll(self._batch_records, POLL_S)
        parsed_records = parse_records(records, self._reader.log_id)
        if schema.apply_first(parsed_records, self._read_to(schema), lease.renew):
            self._seek(schema)

    def _read_to(self, schema: ProjectedSchema) -> Positions:
        """Positions of the reader that are ahead of what is folded."""
        return {
            at: offset
            for at, offset in self._reader.positions().items()
            if offset > schema.folded.get(at, 0)
        }

    def _seek(self, schema: ProjectedSchema) -> None:
        if schema.log_id != self._reader.log_id:
            schema.log_id = self._reader.log_id
            check_log(schema.state, self._reader)
        self._reader.seek(start_positions(schema.committed.positions, self._reader))
