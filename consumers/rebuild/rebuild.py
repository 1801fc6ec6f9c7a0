"""Builds the tables again from the log, beside the live ones, and puts them in their place.

The live tables are first compared with a replay to the same positions; then the new ones catch up
and are swapped in, whether or not anything differed. Running projectors notice by the new build id,
readers not at all. The live schema must be migrated.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from consumers.database.connection import connected
from consumers.database.migrate import SCHEMA_LOCK
from consumers.errors import CuaProjectError, MismatchError, UsageError
from consumers.fold.fold import EVERYTHING, ReplayFilter
from consumers.fold.parse import ParsedRecord
from consumers.log.reader import LogReader
from consumers.projection.loop import ParallelFill
from consumers.projection.positions import Positions, load_positions, read_state
from consumers.rebuild.hashing import NAMES, count_rows, hash_tables
from consumers.rebuild.replay import Replay, check_beginning
from consumers.rebuild.side_schema import finish_tables, make_tables, side_schema
from consumers.rebuild.swap import swap, swap_back
from consumers.tables import OPS_SCHEMA, PREVIOUS_SCHEMA, SCHEMA
from schemas.ids import training_id

logger = logging.getLogger(__name__)

NEAR_RECORDS = 2_000
"""Applied while projectors are blocked; takes some tens of milliseconds."""
RESERVED = (SCHEMA, PREVIOUS_SCHEMA, OPS_SCHEMA, "public", "information_schema")
MAX_NAME_BYTES = 63
"""PostgreSQL cuts longer names."""
CATCH_UPS = 20
"""Rounds of catching up; after them the swap is tried whatever the backlog."""


class RebuildReport(NamedTuple):
    """What was compared or built."""

    events: int
    seconds: float
    equal: bool
    """The live tables were equal to the replay; True of tables that were never filled."""
    swapped: bool
    tables: dict[str, int]
    """Rows of every table in the replay."""
    different: list[str]
    """Live tables that differed from the replay."""
    schema: str
    """The schema that was compared or built."""
    positions: Positions
    """Of the replay."""


class _Side(NamedTuple):
    """A side schema and the replay that fills it."""

    schema: str
    replay: Replay


class _Comparison(NamedTuple):
    """Of the live tables with the replay."""

    is_same_log: bool
    """False: the tables were made from another log and were not compared."""
    different: list[str]

    @property
    def is_equal(self) -> bool:
        return self.is_same_log and not self.different


def compare(reader: LogReader, url: str, *, parallel: ParallelFill | None = None) -> RebuildReport:
    """Compare the live tables with a replay of the log to their positions; changes nothing.

    CuaProjectError when the log lacks its beginning, or while a migration or another rebuild runs;
    MismatchError when the log is shorter than the positions.
    """
    began = time.monotonic()
    with _side_replay(reader, url, parallel) as side:
        comparison = _compare(reader, url, side.replay, side.schema)
        return RebuildReport(
            events=side.replay.num_events,
            seconds=time.monotonic() - began,
            equal=comparison.is_equal,
            swapped=False,
            tables=count_rows(url, side.schema),
            different=comparison.different,
            schema=SCHEMA,
            positions=side.replay.positions,
        )


def rebuild(reader: LogReader, url: str, *, parallel: ParallelFill | None = None) -> RebuildReport:
    """Replace the live tables with a replay of the log; the old ones stay as `cua_previous`.

    Raises what `compare` raises, and CuaProjectError when a session keeps the tables locked.
    """
    began = time.monotonic()
    with _side_replay(reader, url, parallel) as (schema, replay):
        comparison = _compare(reader, url, replay, schema)
        _catch_up(replay, reader)
        finish_tables(url, schema)

        def reach(live: Positions) -> None:
            if comparison.is_same_log and replay.lag(live):
                replay.advance(live)

        with connected(url, "rebuild swap") as connection:
            swap(connection, schema, reach)
        return RebuildReport(
            events=replay.num_events,
            seconds=time.monotonic() - began,
            equal=comparison.is_equal,
            swapped=True,
            tables=count_rows(url, SCHEMA),
            different=comparison.different,
            schema=SCHEMA,
            positions=replay.positions,
        )


def build_into(
    reader: LogReader,
    url: str,
    schema: str,
    *,
    run_name: str | None = None,
    until: Positions | None = None,
) -> RebuildReport:
    """Build one training, or everything before some positions, into a new schema that stays.

    UsageError when the schema exists; CuaProjectError when the log lacks its beginning.
    """
    began = time.monotonic()
    _check_name(schema)
    check_beginning(reader)
    with connected(url, "rebuild") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT to_regnamespace(%s) IS NOT NULL", (f'"{schema}"',))
        row = cursor.fetchone()
    if row is None or row[0]:
        message = (
            f'the schema {schema} exists; drop it (`DROP SCHEMA "{schema}" CASCADE`) or name'
            " another one with --into"
        )
        raise UsageError(message)
    end = reader.end_offsets(reader.partitions()) if until is None else until
    replay_filter = EVERYTHING if run_name is None else _only_training(run_name)
    make_tables(url, schema)
    with Replay(reader, url, schema, replay_filter=replay_filter) as replay:
        replay.advance(end)
    finish_tables(url, schema)
    return RebuildReport(
        events=replay.num_events,
        seconds=time.monotonic() - began,
        equal=True,
        swapped=False,
        tables=count_rows(url, schema),
        different=[],
        schema=schema,
        positions=end,
    )


def _check_name(schema: str) -> None:
    """UsageError unless PostgreSQL and the live tables leave this name for a new schema."""
    reason = None
    if schema in RESERVED:
        reason = "is in use"
    elif schema.startswith("pg_"):
        reason = "begins with pg_, which PostgreSQL keeps for itself"
    elif not schema or '"' in schema or len(schema.encode()) > MAX_NAME_BYTES:
        reason = f"is not a name of 1 to {MAX_NAME_BYTES} bytes without quotation marks"
    if reason is not None:
        message = f"--into: the schema {schema!r} {reason}; choose another name"
        raise UsageError(message)


def roll_back(url: str) -> None:
    """Make the tables that the last rebuild replaced live again.

    NotFoundError when there are none; CuaProjectError when a session keeps the tables locked.
    """
    with _schema_lock(url), connected(url, "rebuild rollback") as connection:
        swap_back(connection)


@contextmanager
def _side_replay(reader: LogReader, url: str, parallel: ParallelFill | None) -> Iterator[_Side]:
    """An empty side schema, dropped on the way out unless it was swapped in."""
    check_beginning(reader)
    with (
        _schema_lock(url),
        side_schema(url, "cua_rebuild_") as schema,
        Replay(reader, url, schema, parallel=parallel) as replay,
    ):
        yield _Side(schema, replay)


@contextmanager
def _schema_lock(url: str) -> Iterator[None]:
    """Holds the schema lock; migrations and rebuilds are mutually exclusive."""
    with connected(url, "rebuild lock") as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", (SCHEMA_LOCK,))
            row = cursor.fetchone()
            if row is None or not row[0]:
                message = "another migration or rebuild is running; retry when it finishes"
                raise CuaProjectError(message)
            yield


def _compare(reader: LogReader, url: str, replay: Replay, schema: str) -> _Comparison:
    """Replay to the live tables' positions and compare."""
    with connected(url, "rebuild snapshot") as connection:
        # One snapshot of positions and hashes, whatever is projected meanwhile.
        connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
        with connection.cursor() as cursor:
            log_id = read_state(cursor, SCHEMA).log_id
            positions = load_positions(cursor, SCHEMA)
            live = hash_tables(cursor, SCHEMA)
    if log_id not in {None, reader.log_id}:
        logger.warning("the tables were made from another log (%s): not compared", log_id)
        return _Comparison(is_same_log=False, different=[])
    _check_ends(positions, reader)
    replay.advance(positions)
    with connected(url, "rebuild hash") as connection, connection.cursor() as cursor:
        replayed = hash_tables(cursor, schema)
    different = [name for name in NAMES if live[name] != replayed[name]]
    if different:
        logger.warning("tables that differ from the log: %s", ", ".join(different))
    return _Comparison(is_same_log=True, different=different)


def _check_ends(positions: Positions, reader: LogReader) -> None:
    ends = reader.end_offsets(reader.partitions())
    beyond = [at for at, offset in positions.items() if offset > ends.get(at, 0)]
    if beyond:
        at = beyond[0]
        message = (
            f"the tables contain {at.topic}/{at.partition} up to offset {positions[at]}, but the"
            f" partition ends at {ends.get(at, 0)}: this is another log, or it was truncated"
        )
        raise MismatchError(message)


def _catch_up(replay: Replay, reader: LogReader) -> None:
    """Advance until little is left to do while projectors are blocked."""
    for _ in range(CATCH_UPS):
        ends = reader.end_offsets(reader.partitions())
        if replay.lag(ends) <= NEAR_RECORDS and replay.positions:
            break
        replay.advance(ends)


def _only_training(run_name: str) -> ReplayFilter:
    training = training_id(run_name)

    def is_wanted(parsed: ParsedRecord) -> bool:
        return parsed.envelope is not None and parsed.envelope.training_id == training

    return ReplayFilter(wanted=is_wanted)
