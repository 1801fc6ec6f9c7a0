"""Builds the tables again from the log, beside the live ones, and puts them in their place.

The live tables are compared first, at one moment's positions; then the new ones catch up and are
swapped in, whether or not anything differed. Projectors notice by the schema's new build id;
readers notice nothing.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from consumers.database.connection import Connection, connected
from consumers.database.migrate import SCHEMA_LOCK, current_revision, ensure_current, migrate
from consumers.errors import CuaProjectError, MismatchError, UsageError
from consumers.fold.fold import EVERYTHING, ReplayFilter
from consumers.log.reader import LogReader, TopicPartition
from consumers.projection.parallel import Parallel
from consumers.projection.positions import Positions, ProjectionState, load_positions, read_state
from consumers.projection.replay import Replay, check_beginning, of_training
from consumers.rebuild.hashing import NAMES, TableHash, hash_tables
from consumers.rebuild.side_schema import finish_tables, make_tables, side_schema
from consumers.rebuild.swap import covers, roll_back, swap
from consumers.tables import SCHEMA
from schemas.ids import training_id

NEAR_RECORDS = 2_000
"""So few records behind, the rest is caught up while projectors are held back: some tens of
milliseconds."""
CATCH_UPS = 20
"""Rounds of catching up before the swap is tried whatever is left."""

Say = Callable[[str], None]


class Rebuilt(NamedTuple):
    """What a rebuild did."""

    events: int
    seconds: float
    equal: bool
    """The live tables were what the log says; of tables that were never filled, too."""
    swapped: bool
    tables: dict[str, int]
    """Rows."""
    different: list[str]
    """Tables that were not what the log says."""
    schema: str
    """Where the tables are."""
    positions: Positions


class Filling:
    """A side schema being filled, by this process or, where that is worthwhile, by several."""

    def __init__(self, url: str, replay: Replay, schema: str, parallel: Parallel | None) -> None:
        self._url = url
        self._replay = replay
        self._schema = schema
        self._parallel = parallel
        self.num_events = 0

    @property
    def positions(self) -> Positions:
        """Up to where it is filled."""
        return self._replay.positions

    def lag(self, until: Positions) -> int:
        """Records between here and there."""
        return self._replay.lag(until)

    def advance(self, until: Positions) -> None:
        """Apply everything before these positions and nothing after."""
        if self._parallel is not None and self._parallel.is_worthwhile(self._replay.lag(until)):
            self.num_events += self._parallel.fill(
                self._url, self._schema, self._replay.positions, until
            )
            self._replay.refresh()
        before = self._replay.num_events
        self._replay.advance(until)
        self.num_events += self._replay.num_events - before


def rebuild(
    reader: LogReader, url: str, *, check: bool, say: Say, parallel: Parallel | None = None
) -> Rebuilt:
    """From the whole log into the live tables' place; with `check` only compared.

    CuaProjectError when the log lacks its beginning.

    With `parallel` a long log is replayed by several processes.
    """
    began = time.monotonic()
    _make_or_check(url)
    check_beginning(reader)
    with (
        _alone(url),
        side_schema(url, "cua_rebuild_") as schema,
        connected(url, "rebuild") as connection,
        Replay(reader, url, schema) as one_process,
    ):
        state, positions, before = _live(url)
        replay = Filling(url, one_process, schema, parallel)
        comparable = state.log_id in {None, reader.log_id}
        if not comparable:
            say(f"the tables are of another log ({state.log_id}), and so were not compared")
        else:
            _check_ends(positions, reader)
            replay.advance(positions)
        after = _hash(connection, schema)
        different = [name for name in NAMES if comparable and before[name] != after[name]]
        if different:
            say(f"the tables differed from the log in {', '.join(different)}")
        if not check:
            _catch_up(replay, reader)
            finish_tables(url, schema)
            with connected(url, "rebuild swap") as swapper:
                swap(swapper, schema, lambda live: _reach(replay, live, comparable=comparable), say)
        rows = _count(connection, schema if check else SCHEMA)
        seconds = time.monotonic() - began
        where = schema if check else SCHEMA
        equal = comparable and not different
        return Rebuilt(
            replay.num_events, seconds, equal, not check, rows, different, where, replay.positions
        )


def rebuild_into(
    reader: LogReader, url: str, schema: str, *, run_name: str | None, until: Positions | None
) -> Rebuilt:
    """One training, or everything before a moment, into a schema of its own, which must not exist.

    It stays until it is dropped.
    """
    began = time.monotonic()
    _make_or_check(url)
    check_beginning(reader)
    replay_filter: ReplayFilter = (
        EVERYTHING if run_name is None else of_training(training_id(run_name))
    )
    end = reader.ends(reader.places()) if until is None else until
    with connected(url, "rebuild") as connection:
        with connection.cursor() as cursor:
            cursor.execute("SELECT to_regnamespace(%s) IS NOT NULL", (f'"{schema}"',))
            row = cursor.fetchone()
        connection.rollback()
        if row is None or row[0]:
            message = (
                f"expected a new schema's name, found {schema}, which exists; drop it or give"
                " another one with --into"
            )
            raise UsageError(message)
        make_tables(url, schema)
        with Replay(reader, url, schema, replay_filter) as replay:
            replay.advance(end)
        finish_tables(url, schema)
        tables = _count(connection, schema)
    return Rebuilt(
        replay.num_events,
        time.monotonic() - began,
        equal=True,
        swapped=False,
        tables=tables,
        different=[],
        schema=schema,
        positions=end,
    )


def undo(url: str, say: Say) -> None:
    """The tables as they were before the last rebuild."""
    ensure_current(url)
    with _alone(url), connected(url, "rebuild rollback") as connection:
        roll_back(connection, say)


def positions_before(reader: LogReader, moment: datetime) -> Positions:
    """Of every partition, the first record appended at or after a moment."""
    return reader.offset_at(reader.places(), moment)


def parse_until(text: str, reader: LogReader) -> Positions:
    """A time (ISO 8601, UTC when it names no zone) or a position vector `topic/partition=offset,...`; UsageError otherwise."""
    if "=" in text:
        return dict(_parse_position(part) for part in text.split(","))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        message = (
            "expected a time such as 2026-03-01T12:00:00Z or positions such as cua.training/0=17,"
            f" found {text!r}"
        )
        raise UsageError(message) from None
    return positions_before(reader, moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _parse_position(part: str) -> tuple[TopicPartition, int]:
    place, _, offset = part.strip().partition("=")
    topic, _, partition = place.rpartition("/")
    if not (topic and partition.isdecimal() and offset.isdecimal()):
        message = f"expected a position as topic/partition=offset, found {part!r}"
        raise UsageError(message)
    return TopicPartition(topic, int(partition)), int(offset)


def format_positions(positions: Positions) -> str:
    """As `--until` takes them."""
    return ",".join(
        f"{place.topic}/{place.partition}={offset}" for place, offset in sorted(positions.items())
    )


def _make_or_check(url: str) -> None:
    from consumers.database.connection import schema_engine

    engine = schema_engine(url)
    with engine.connect() as connection:
        is_empty = current_revision(connection) is None
    if is_empty:
        migrate(url)
    else:
        ensure_current(url)


@contextmanager
def _alone(url: str) -> Iterator[None]:
    """No migration and no other rebuild meanwhile."""
    with connected(url, "rebuild lock") as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", (SCHEMA_LOCK,))
            row = cursor.fetchone()
            if row is None or not row[0]:
                message = (
                    "expected to be alone in changing the schema, found another rebuild or a"
                    " migration at work; try again when it is done"
                )
                raise CuaProjectError(message)
            yield


def _live(url: str) -> tuple[ProjectionState, Positions, dict[str, TableHash]]:
    """Positions and hashes of one moment, whatever code filled the tables."""
    with connected(url, "rebuild snapshot") as connection:
        connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
        with connection.cursor() as cursor:
            return (
                read_state(cursor, SCHEMA),
                load_positions(cursor, SCHEMA),
                hash_tables(cursor, SCHEMA),
            )


def _check_ends(positions: Positions, reader: LogReader) -> None:
    ends = reader.ends(reader.places())
    beyond = [place for place, offset in positions.items() if offset > ends.get(place, 0)]
    if beyond:
        where = f"{beyond[0].topic}/{beyond[0].partition}"
        message = (
            f"expected {where} to reach offset {positions[beyond[0]]}, found its end at"
            f" {ends.get(beyond[0], 0)}: this is another log"
        )
        raise MismatchError(message)


def _catch_up(replay: Filling, reader: LogReader) -> None:
    for _ in range(CATCH_UPS):
        ends = reader.ends(reader.places())
        if replay.lag(ends) <= NEAR_RECORDS and replay.positions:
            break
        replay.advance(ends)


def _reach(replay: Filling, live: Positions, *, comparable: bool) -> None:
    if comparable and not covers(replay.positions, live):
        replay.advance(live)


def _hash(connection: Connection, schema: str) -> dict[str, TableHash]:
    with connection, connection.cursor() as cursor:
        return hash_tables(cursor, schema)


def _count(connection: Connection, schema: str) -> dict[str, int]:
    """Rows of every table."""
    rows = {}
    with connection, connection.cursor() as cursor:
        for name in NAMES:
            cursor.execute(f'SELECT count(*) FROM "{schema}"."{name}"')
            rows[name] = int((cursor.fetchone() or (0,))[0])
    return rows
