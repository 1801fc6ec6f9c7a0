"""Compares every table, at one snapshot, with a replay of the log to that snapshot's positions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from consumers.database.connection import Connection, Cursor, connected
from consumers.database.shape import Problem, find_problems
from consumers.errors import MismatchError
from consumers.fold.fold import ReplayFilter
from consumers.fold.projectors.registry import catalogue_hash
from consumers.log.reader import LastRecord, LogReader, TopicPartition
from consumers.progress import ReplayProgress
from consumers.projection.copying import TABLES
from consumers.projection.positions import (
    Positions,
    ProjectionState,
    check_last_records,
    check_log,
    check_reach,
    load_last_records,
    load_positions,
    read_state,
)
from consumers.projection.stored import load_dropped
from consumers.projection.unapplied_records import interrupted_retries
from consumers.rebuild.hashing import NAMES, TableHash, hash_tables, row_hashes
from consumers.rebuild.replay import Replay, check_beginning
from consumers.rebuild.side_schema import TEMPORARY, make_temporary_tables
from consumers.status.gaps import NO_GAPS, WaitingStreams, load_waiting
from consumers.tables import PROJECTION_VERSION, SCHEMA, STATE_TABLES

TEMPORARY_SETTINGS = {"temp_buffers": "64MB"}
"""Of the session whose temporary tables have the replay: no other has a cache for them."""
MAX_DIFFERENCES = 1_000
"""Reported; `has_more` when there are others."""
MISSING = "(no row)"
BY_CODE = ["unknown_schema", "invalid", "transition"]
"""Kinds of parked records that other code may be able to apply: it knows another type, another
value of a field or another transition."""
ALL_ROWS = "*"
"""The key of a difference that is about a whole table or column."""
NEEDED = frozenset(str(table.__tablename__) for table in STATE_TABLES)
"""Tables without which no replay to the live positions is possible."""


class Difference(NamedTuple):
    """One column of one row that differs; `column` is None for a row that one side lacks."""

    table: str
    key: str
    column: str | None
    live: str | None
    replayed: str | None


class Snapshot(NamedTuple):
    """The live schema at one moment."""

    state: ProjectionState
    positions: Positions
    tables: dict[str, TableHash]
    replay_filter: ReplayFilter
    """Parks what the code that filled the tables could not apply."""
    retryable: list[str]
    """Streams parked by code that knew other events, or whose retry was interrupted; this code
    may be able to apply them."""
    problems: list[Problem]
    """What the live schema lacks."""
    last: Mapping[TopicPartition, LastRecord] = MappingProxyType({})
    """The last record of each partition that the live tables have read."""
    waiting: WaitingStreams = NO_GAPS

    @property
    def broken(self) -> set[str | None]:
        """Tables whose rows cannot be compared; None: all."""
        return {problem.table for problem in self.problems if problem.is_fatal}


@dataclass
class Verification:
    """The result."""

    equal: bool
    events: int
    tables: dict[str, TableHash]
    differences: list[Difference] = field(default_factory=list)
    has_more: bool = False
    """There are more differences than listed."""
    retryable: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """What the live schema lacks, in words; whatever it is, the tables are not equal."""
    log_problem: str | None = None
    """The log was restored from an older state and has grown past the tables; they are not equal
    to it, whatever their rows."""
    waiting: WaitingStreams = NO_GAPS
    """Streams whose records after a gap are in neither: tables that equal such a log lack them."""


def take_snapshot(connection: Connection) -> Snapshot:
    """Hashes and positions of one snapshot; the connection's transaction stays open on it."""
    connection.rollback()
    connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
    with connection.cursor() as cursor:
        problems = find_problems(cursor, [SCHEMA])
        broken = {problem.table for problem in problems if problem.is_fatal}
        if None in broken or broken & NEEDED:
            state = ProjectionState("", PROJECTION_VERSION, catalogue_hash(), None)
            return Snapshot(state, {}, {}, ReplayFilter(), [], problems)
        state = read_state(cursor, SCHEMA)
        if state.version != PROJECTION_VERSION:
            is_older = state.version < PROJECTION_VERSION
            helps = "run `cua-project rebuild`" if is_older else "install the newer cua-train"
            message = (
                f"the tables have projection version {state.version}, this code"
                f" {PROJECTION_VERSION}; {helps}"
            )
            raise MismatchError(message)
        positions = load_positions(cursor, SCHEMA)
        last = load_last_records(cursor, SCHEMA)
        parked, retryable = frozenset[tuple[str, int, int]](), list[str]()
        if state.catalogue_hash != catalogue_hash():
            parked, retryable = _parked_by_other_code(cursor)
        if halves := interrupted_retries(cursor, SCHEMA):
            parked |= {(topic, at, offset) for topic, at, offset, _ in halves}
            retryable = sorted({*retryable, *(half[3] for half in halves)})
        replay_filter = ReplayFilter(parked, dropped=load_dropped(cursor, SCHEMA))
        whole = [name for name in NAMES if name not in broken]
        tables = hash_tables(cursor, SCHEMA, whole)
        waiting = load_waiting(cursor, SCHEMA)
        return Snapshot(
            *(state, positions, tables, replay_filter, retryable, problems, last, waiting)
        )


def _parked_by_other_code(
    cursor: Cursor,
) -> tuple[frozenset[tuple[str, int, int]], list[str]]:
    """Where records are that other code could not apply, and their streams."""
    cursor.execute(
        f"SELECT topic, partition, log_offset, stream FROM {SCHEMA}.unapplied_record WHERE state ="
        " 'parked' AND kind = ANY(%s) ORDER BY stream",
        (BY_CODE,),
    )
    rows = cursor.fetchall()
    places = frozenset((topic, partition, offset) for topic, partition, offset, _ in rows)
    return places, [row[3] for row in rows]


def verify(reader: LogReader, url: str, *, progress: ReplayProgress | None = None) -> Verification:
    """Replay into temporary tables and compare; names what is missing instead of failing on it.

    MismatchError when tables, code and log do not belong together; CuaProjectError when the log
    lacks its beginning.
    """
    with connected(url, "verify") as live:
        snapshot = take_snapshot(live)
        missing = [problem.text for problem in snapshot.problems]
        check_log(snapshot.state, reader)
        check_reach(snapshot.positions, reader)
        log_problem = _log_problem(snapshot, reader)
        check_beginning(reader)
        if not snapshot.tables:
            # Without positions there is nothing to replay to.
            return Verification(
                equal=False, events=0, tables={}, differences=_missing(snapshot), missing=missing
            )
        with connected(url, "verify replay", TEMPORARY_SETTINGS) as connection:
            make_temporary_tables(connection)
            with Replay(
                *(reader, url, TEMPORARY),
                replay_filter=snapshot.replay_filter,
                progress=progress,
                session=connection,
            ) as replay:
                replay.advance(snapshot.positions)
            replayed = _hashes(connection, snapshot)
            found = _missing(snapshot) + [
                difference
                for table in snapshot.tables
                if snapshot.tables[table] != replayed[table]
                for difference in islice(_differences(live, connection, table), MAX_DIFFERENCES + 1)
            ]
            connection.rollback()
    return Verification(
        equal=snapshot.tables == replayed and not missing and log_problem is None,
        events=replay.num_events,
        tables=snapshot.tables,
        differences=found[:MAX_DIFFERENCES],
        has_more=len(found) > MAX_DIFFERENCES,
        retryable=snapshot.retryable,
        missing=missing,
        log_problem=log_problem,
        waiting=snapshot.waiting,
    )


def _log_problem(snapshot: Snapshot, reader: LogReader) -> str | None:
    """Rows can be compared nevertheless, and say what the log no longer has."""
    try:
        check_last_records(snapshot.last, reader)
    except MismatchError as error:
        return str(error)
    return None


def _hashes(connection: Connection, snapshot: Snapshot) -> dict[str, TableHash]:
    with connection, connection.cursor() as cursor:
        return hash_tables(cursor, TEMPORARY, snapshot.tables)


def _missing(snapshot: Snapshot) -> list[Difference]:
    """What the live schema lacks, as differences of whole tables and columns."""
    return [
        Difference(problem.table or problem.schema, ALL_ROWS, problem.column, problem.text, None)
        for problem in snapshot.problems
    ]


def _differences(live: Connection, replayed: Connection, table: str) -> Iterator[Difference]:
    """Rows that one side lacks, and columns that differ, by key."""
    for key, left, right in _merged(
        row_hashes(live, SCHEMA, table), row_hashes(replayed, TEMPORARY, table)
    ):
        if left == right:
            continue
        if left is None:
            yield Difference(table, key, None, MISSING, "a row")
        elif right is None:
            yield Difference(table, key, None, "a row", MISSING)
        else:
            before, after = _row(live, SCHEMA, table, key), _row(replayed, TEMPORARY, table, key)
            yield from (
                Difference(table, key, name, before[name], after[name])
                for name in sorted(before)
                if before[name] != after[name]
            )


def _merged(
    left: Iterator[tuple[str, str]], right: Iterator[tuple[str, str]]
) -> Iterator[tuple[str, str | None, str | None]]:
    """Two sorted sequences of (key, hash) as one of (key, left's hash, right's hash)."""
    ours, theirs = next(left, None), next(right, None)
    while ours is not None or theirs is not None:
        key = min(pair[0] for pair in (ours, theirs) if pair is not None)
        is_ours, is_theirs = (
            ours is not None and ours[0] == key,
            theirs is not None and theirs[0] == key,
        )
        yield (
            key,
            ours[1] if is_ours and ours else None,
            theirs[1] if is_theirs and theirs else None,
        )
        if is_ours:
            ours = next(left, None)
        if is_theirs:
            theirs = next(right, None)


def _row(connection: Connection, schema: str, table: str, key: str) -> dict[str, str | None]:
    names = list(TABLES[table].by_name)
    columns = ", ".join(f'"{name}"::text' for name in names)
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT {columns} FROM "{schema}"."{table}" WHERE id = %s', (key,))
        row = cursor.fetchone()
    assert row is not None  # noqa: S101  # the key was read in the same snapshot
    return dict(zip(names, row, strict=True))
