"""The projector: reads the log from where the tables stand, applies it, and goes on for as long as it is asked to.

Whatever goes wrong with the database or the log is waited out, saying so; what is in memory is thrown away and read again.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import psycopg2

from consumers.database.connection import Connection, connect
from consumers.database.lease import RENEW_EVERY_S, acquire, current_holder, new_holder, release
from consumers.errors import MismatchError, UnreachableError
from consumers.fold.fold import parse_record
from consumers.log.reader import LogReader, TopicPartition
from consumers.projection.outage import Outage
from consumers.projection.parallel import Parallel, UnfinishedError
from consumers.projection.pipeline import Pipeline
from consumers.projection.positions import SupersededError, adopt_log, check_log, start_positions
from consumers.projection.redrive import redrive_if_newer
from consumers.projection.schema import ProjectedSchema
from consumers.tables import PROJECTION_VERSION, SCHEMA

BATCH_RECORDS = 5_000
"""At once from the log: enough that a transaction's fixed cost disappears, some 20 MB of memory."""
POLL_S = 0.2
"""How long a quiet log is listened to before the lease is looked after."""
PLACES_EVERY_S = 2.0
"""How often new partitions are looked for."""
ONCE_LIMIT_S = 60.0
"""`run_once` gives up when the database, the log or the lease has been away for so long."""

Say = Callable[[str], None]


class Report(NamedTuple):
    """What a run did."""

    events: int
    seconds: float
    positions: dict[TopicPartition, int]


class _LeaseTakenError(Exception):
    """Another projector works."""


@dataclass(slots=True)
class _Run:
    """One call of `run_once` or `run_forever`."""

    stop: threading.Event
    outage: Outage
    limit_s: float | None
    """How long a failure is waited out; None: for ever."""
    ends: dict[TopicPartition, int] | None
    """Where to stop; None: nowhere."""
    events: int = 0
    events_before: int = 0
    """Of earlier connections and other processes."""
    positions: dict[TopicPartition, int] = field(default_factory=dict)

    def is_done(self) -> bool:
        """Everything that was asked for is applied, or nobody asks any more."""
        if self.stop.is_set():
            return True
        return self.ends is not None and all(
            self.positions.get(place, 0) >= end for place, end in self.ends.items()
        )


class ProjectionLoop:
    """Keeps the tables of one database up to date with one log.

    Not thread-safe; stopped by its event from any thread or signal.
    """

    def __init__(
        self,
        reader: LogReader,
        url: str,
        *,
        say: Say = lambda _: None,
        batch_records: int = BATCH_RECORDS,
        adopt: bool = False,
        parallel: Parallel | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`adopt`: start on another log than the tables were made of; `parallel`.

        How a long way is caught up by several processes.
        """
        self._reader = reader
        self._url = url
        self._say = say
        self._batch_records = batch_records
        self._adopt = adopt
        self._parallel = parallel
        self._clock = clock
        self._holder = new_holder()
        self._renewed_at = float("-inf")

    def run_once(
        self, limit_s: float = ONCE_LIMIT_S, stop: threading.Event | None = None
    ) -> Report:
        """To the end that the log has now.

        UnreachableError when the database or the log is away for longer than `limit_s`.
        """
        started = self._clock()
        ends = self._reader.ends(self._reader.places())
        run = _Run(stop or threading.Event(), Outage(self._say, self._clock), limit_s, ends)
        self._run(run)
        return Report(run.events, self._clock() - started, run.positions)

    def run_forever(self, stop: threading.Event) -> Report:
        """Until `stop` is set; failures are waited out."""
        started = self._clock()
        run = _Run(stop, Outage(self._say, self._clock), None, None)
        self._run(run)
        return Report(run.events, self._clock() - started, run.positions)

    def _run(self, run: _Run) -> None:
        while True:
            try:
                self._session(run)
            except (
                psycopg2.OperationalError,
                psycopg2.InterfaceError,
                UnreachableError,
                _LeaseTakenError,
            ) as error:
                why = str(error).strip()
                if run.limit_s is not None and run.outage.seconds > run.limit_s:
                    message = f"gave up after {run.limit_s:.0f} s: {why}"
                    raise UnreachableError(message) from None
                run.stop.wait(run.outage.failed(why))
                if run.stop.is_set():
                    return
            else:
                if run.is_done():
                    return

    def _session(self, run: _Run) -> None:
        """As long as two connections hold.

        One commits, the other keeps the lease and looks streams up meanwhile.
        """
        run.events_before = run.events
        connection = connect(self._url, "run")
        try:
            keeper = connect(self._url, "run, lease")
        except UnreachableError:
            connection.close()
            raise
        keeper.autocommit = True
        try:
            self._renewed_at = float("-inf")
            schema = ProjectedSchema(connection, SCHEMA, self._reader.log_id)
            schema.load()
            self._note(run, schema)
            try:
                self._hold_lease(keeper)
            except _LeaseTakenError:
                if run.is_done():
                    # The other projector has applied what was asked for.
                    return
                raise
            self._prepare(schema)
            self._catch_up(schema, keeper, run)
            self._follow(schema, keeper, run)
        finally:
            connection.close()
            self._leave(keeper)

    def _prepare(self, schema: ProjectedSchema) -> None:
        """Check that tables, code and log belong together."""
        if schema.state.version != PROJECTION_VERSION:
            found = f"found version {schema.state.version}; run `cua-project rebuild`"
            message = f"expected tables of projection version {PROJECTION_VERSION}, {found}"
            raise MismatchError(message)
        with schema.connection, schema.connection.cursor() as cursor:
            if self._adopt and schema.state.log_id not in {None, self._reader.log_id}:
                adopt_log(cursor, SCHEMA, self._reader.log_id)
        schema.load()
        check_log(schema.state, self._reader)
        if redrive_if_newer(schema):
            schema.load()

    def _catch_up(self, schema: ProjectedSchema, keeper: Connection, run: _Run) -> None:
        """A long way, by several processes."""
        until = self._reader.ends(self._reader.places())
        start = start_positions(schema.positions, self._reader)
        if self._parallel is None or not self._parallel.is_worthwhile(
            sum(until.values()) - sum(start.values())
        ):
            return

        def go_on() -> bool:
            self._hold_lease(keeper)
            run.outage.over()
            return not run.stop.is_set()

        try:
            run.events_before += self._parallel.fill(self._url, schema.schema, start, until, go_on)
        except UnfinishedError as error:
            self._say(f"{error}; going on alone")
        schema.load()
        self._note(run, schema)

    def _follow(self, schema: ProjectedSchema, keeper: Connection, run: _Run) -> None:
        self._seek(schema)
        looked_at = self._clock()
        with Pipeline(schema, keeper) as pipeline:
            while not run.is_done():
                self._hold_lease(keeper)
                records = self._reader.poll(self._batch_records, POLL_S)
                try:
                    if records:
                        pipeline.send([parse_record(record) for record in records])
                    if len(records) < self._batch_records:
                        # Nothing more to read yet: nothing to fold meanwhile.
                        pipeline.settle()
                except SupersededError as error:
                    self._say(f"{error}: reading where the tables stand")
                    pipeline.abandon()
                    schema.load()
                    self._renewed_at = float("-inf")
                    self._seek(schema)
                if not records and self._clock() - looked_at > PLACES_EVERY_S:
                    self._seek(schema)
                    looked_at = self._clock()
                # Not merely taken for committing: a database that refuses every commit does not
                # work.
                if not records or run.positions != schema.positions:
                    run.outage.over()
                self._note(run, schema)
            pipeline.settle()
            self._note(run, schema)

    def _note(self, run: _Run, schema: ProjectedSchema) -> None:
        run.events = run.events_before + schema.num_events
        run.positions = dict(schema.positions)

    def _seek(self, schema: ProjectedSchema) -> None:
        if schema.log_id != self._reader.log_id:
            schema.log_id = self._reader.log_id
            check_log(schema.state, self._reader)
        self._reader.seek(start_positions(schema.positions, self._reader))

    def _hold_lease(self, connection: Connection) -> None:
        now = self._clock()
        if now - self._renewed_at < RENEW_EVERY_S:
            return
        with connection.cursor() as cursor:
            if not acquire(cursor, self._holder):
                holder = current_holder(cursor)
                message = (
                    f"another projector works ({'it just left' if holder is None else holder[0]});"
                    " waiting for its place"
                )
                raise _LeaseTakenError(message)
        self._renewed_at = now

    def _leave(self, connection: Connection) -> None:
        try:
            with connection.cursor() as cursor:
                release(cursor, self._holder)
        except psycopg2.Error:
            # The server is away, and the lease ends with the session.
            pass
        finally:
            connection.close()
