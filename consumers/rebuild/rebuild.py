"""Builds the tables again from the log in a new schema, and swaps it for the live one.

The live tables are first compared with a replay to the same positions; then the new ones catch up
and are swapped in, whether or not anything differed. Running projectors notice by the new build id,
readers not at all. The live schema must be migrated.
"""

import logging
import time
from dataclasses import dataclass
from typing import NamedTuple

from consumers.database.connection import connected
from consumers.database.migrate import inspect_revision
from consumers.database.side_schemas import SideSchema
from consumers.errors import CuaProjectError, MismatchError, NotFoundError
from consumers.fold.fold import EVERYTHING, ReplayFilter
from consumers.fold.parse import ParsedRecord
from consumers.log.reader import LogReader
from consumers.progress import ReplayProgress
from consumers.projection.loop import ParallelFill
from consumers.projection.positions import Positions, read_state
from consumers.rebuild.built import INTO, check_name, new_schema
from consumers.rebuild.carry import require_carriable
from consumers.rebuild.comparison import Comparison, LiveTables, compare_with, read_live
from consumers.rebuild.finished import (
    Finished,
    StaleError,
    discard,
    drops_hash,
    filled_schema,
    finished_side,
)
from consumers.rebuild.hashing import count_rows
from consumers.rebuild.live_order import LiveOrder, read_live_order, require_decided
from consumers.rebuild.preparation import prepare_database, schema_lock
from consumers.rebuild.replay import Replay, check_beginning
from consumers.rebuild.side_schema import finish_tables, side_schema, write_views
from consumers.rebuild.swap import require_previous, swap, swap_back
from consumers.rebuild.waiting import Patience
from consumers.tables import PREVIOUS_SCHEMA, SCHEMA
from schemas.ids import training_id

logger = logging.getLogger(__name__)

NEAR_RECORDS = 2_000
"""Applied while projectors are blocked; takes some tens of milliseconds."""
CATCH_UPS = 20
"""Rounds of catching up; after them the swap is tried whatever the backlog."""
SWAP_TIMEOUT_S = 3600.0
"""A reader's transaction is waited for so long; nothing stands still meanwhile."""


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


@dataclass(slots=True)
class UnfinishedRebuild:
    """What the next attempt of a process continues with after an outage."""

    schema: str | None = None
    """Has what was replayed."""
    live: LiveTables | None = None
    """Of the first attempt; None: not read, or without positions."""
    comparison: Comparison | None = None
    drops: str | None = None
    """Hash of what operators had given up when the replay began."""
    done: RebuildReport | None = None
    """The swap is done; only views and counts are left."""

    def start(self, schema: str) -> None:
        """Nothing is replayed yet."""
        self.schema, self.live, self.comparison, self.drops = schema, None, None, None

    @property
    def continued(self) -> str | None:
        """The schema to continue with. A replay in the live tables' order begins anew."""
        is_ordered = self.live is not None and bool(self.live.order) and self.comparison is None
        return None if is_ordered else self.schema


def compare(
    reader: LogReader,
    url: str,
    *,
    parallel: ParallelFill | None = None,
    progress: ReplayProgress | None = None,
) -> RebuildReport:
    """Compare the live tables with a replay of the log to their positions; changes nothing.

    CuaProjectError when the log lacks its beginning, or while a migration or another rebuild runs;
    MismatchError when the log lacks records that the tables have read, or is an empty one next to
    tables of another.
    """
    began = time.monotonic()
    check_beginning(reader)
    with (
        schema_lock(url),
        side_schema(url, "rebuild") as schema,
        Replay(reader, url, schema, parallel=parallel, progress=progress) as replay,
    ):
        comparison = compare_with(read_live(url), reader, url, replay, schema)
        return RebuildReport(
            events=replay.num_events,
            seconds=time.monotonic() - began,
            equal=comparison.is_equal,
            swapped=False,
            tables=count_rows(url, schema),
            different=comparison.different,
            schema=SCHEMA,
            positions=replay.positions,
        )


def rebuild(
    reader: LogReader,
    url: str,
    *,
    parallel: ParallelFill | None = None,
    swap_timeout_s: float | None = SWAP_TIMEOUT_S,
    from_shorter_log: bool = False,
    progress: ReplayProgress | None = None,
    unfinished: UnfinishedRebuild | None = None,
) -> RebuildReport:
    """Replace the live tables with a replay of the log; the old ones stay as `cua_previous`.

    Makes again whatever is missing of the tables, and carries the objects that users added. A
    finished replay that could not be swapped in outlives this process, and the next call continues
    with it. `unfinished`: of an attempt that an outage ended, to continue with. `from_shorter_log`:
    also from a log that lacks records that the tables have read. Otherwise raises what `compare`
    raises; CuaProjectError, naming it, for what cannot be carried, before the replay begins;
    LimitExceededError when sessions keep the tables locked for `swap_timeout_s` (None: for ever).
    """
    began = time.monotonic()
    keeps = unfinished is not None
    state = unfinished or UnfinishedRebuild()
    if state.done is not None:
        return _complete(url, state.done)
    check_beginning(reader)
    with schema_lock(url):
        prepare_database(url)
        with filled_schema(url, reader, state.continued, keeps=keeps) as (schema, finished):
            with connected(url, "rebuild, dependants") as connection:
                require_carriable(connection, schema)
            with Replay(reader, url, schema, parallel=parallel, progress=progress) as replay:
                taken = finished or _replay(
                    replay, reader, url, schema, state, from_shorter_log=from_shorter_log
                )
                if finished is not None:
                    _catch_up(replay, reader)
                comparison = Comparison(taken.is_same_log, list(taken.different))
                _swap_in(url, schema, reader, replay, taken, swap_timeout_s)
                state.done = RebuildReport(
                    events=max(taken.events, replay.num_events),
                    seconds=time.monotonic() - began,
                    equal=comparison.is_equal,
                    swapped=True,
                    tables={},
                    different=comparison.different,
                    schema=SCHEMA,
                    positions=replay.positions,
                )
                return _complete(url, state.done)


def _replay(
    replay: Replay,
    reader: LogReader,
    url: str,
    schema: str,
    state: UnfinishedRebuild,
    *,
    from_shorter_log: bool,
) -> Finished:
    """Fill the schema up to the log's end, compare on the way, and mark it as finished."""
    if not replay.positions:
        state.start(schema)
    if state.drops is None:
        state.drops = drops_hash(url)
    if state.comparison is None:
        state.live = state.live or read_live(url)
        state.comparison = compare_with(
            state.live, reader, url, replay, schema, from_shorter_log=from_shorter_log
        )
    _catch_up(replay, reader)
    comparison = state.comparison
    taken = Finished(comparison.is_same_log, comparison.different, replay.num_events, state.drops)
    side = finished_side(schema, reader.log_id, taken)
    finish_tables(url, schema, with_views=False, side=side)
    return taken


def _complete(url: str, done: RebuildReport) -> RebuildReport:
    write_views(url)
    return done._replace(tables=count_rows(url, SCHEMA))


def _swap_in(
    url: str,
    schema: str,
    reader: LogReader,
    replay: Replay,
    finished: Finished,
    timeout_s: float | None,
) -> None:
    """Swap, keeping up while it waits for readers; an error names the way to go on."""

    def reach(live: Positions) -> None:
        if drops_hash(url) != finished.drops:
            raise StaleError
        if finished.is_same_log and replay.lag(live):
            replay.advance(live)

    patience = Patience(timeout_s, lambda: _catch_up(replay, reader))
    try:
        with connected(url, "rebuild swap") as connection:
            swap(connection, schema, reach, patience)
    except StaleError:
        discard(url, schema)
        message = (
            "an operator gave up records while the log was replayed; run `cua-project rebuild`"
            " again"
        )
        raise CuaProjectError(message) from None
    except CuaProjectError as error:
        message = (
            f"{error}. The finished replay stays as the schema {schema}: `cua-project rebuild`"
            f" continues with it, `cua-project rebuild --drop {schema}` removes it"
        )
        raise type(error)(message) from None


def build_into(
    reader: LogReader,
    url: str,
    schema: str,
    *,
    run_name: str | None = None,
    until: Positions | None = None,
    progress: ReplayProgress | None = None,
) -> RebuildReport:
    """Build one training, or everything before some positions, into a new schema that stays.

    Streams in several partitions are read in the order of the live tables. UsageError when the
    schema exists; NotFoundError when the training has no event before the positions;
    CuaProjectError when the log lacks its beginning; MismatchError when the live tables do not say
    in which order to read such a stream.
    """
    began = time.monotonic()
    check_name(schema)
    check_beginning(reader)
    end = reader.end_offsets(reader.partitions()) if until is None else until
    streams: set[str] = set()
    replay_filter = EVERYTHING if run_name is None else _only_training(run_name, streams)
    with new_schema(url, schema):
        order = _live_order(reader, url)
        with Replay(reader, url, schema, replay_filter=replay_filter, progress=progress) as replay:
            replay.advance(end, order)
        if run_name is not None and not streams:
            message = f"the training {run_name!r} has no event before --until"
            raise NotFoundError(message)
        with connected(url, "rebuild order") as connection, connection.cursor() as cursor:
            require_decided(order, cursor, schema)
        side = SideSchema(schema, INTO, is_finished=True, details={})
        finish_tables(url, schema, with_views=True, side=side)
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


def _live_order(reader: LogReader, url: str) -> LiveOrder:
    """How the live tables read streams in several partitions of this log."""
    with connected(url, "rebuild order") as connection:
        connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
        with connection.cursor() as cursor:
            if read_state(cursor, SCHEMA).log_id != reader.log_id:
                return LiveOrder({})
            return read_live_order(cursor, SCHEMA)


def roll_back(url: str, *, swap_timeout_s: float | None = SWAP_TIMEOUT_S) -> None:
    """Make the tables that the last rebuild replaced live again, with the objects that users added.

    NotFoundError when there are none; MismatchError when they lack something; LimitExceededError
    when sessions keep the tables locked; CuaProjectError, naming it, for what cannot be carried.
    """
    with schema_lock(url), connected(url, "rebuild rollback") as connection:
        with connection, connection.cursor() as cursor:
            require_previous(cursor, next(iter(inspect_revision(cursor).found), None))
        require_carriable(connection, PREVIOUS_SCHEMA)
        swap_back(connection, Patience(swap_timeout_s))


def can_roll_back(url: str) -> bool:
    """Whether the tables that the last rebuild replaced could become live again."""
    with connected(url, "rebuild rollback") as connection, connection.cursor() as cursor:
        try:
            require_previous(cursor, next(iter(inspect_revision(cursor).found), None))
        except (NotFoundError, MismatchError):
            return False
    return True


def _catch_up(replay: Replay, reader: LogReader) -> None:
    """Advance until little is left to do while projectors are blocked."""
    for _ in range(CATCH_UPS):
        ends = reader.end_offsets(reader.partitions())
        if replay.lag(ends) <= NEAR_RECORDS and replay.positions:
            break
        replay.advance(ends)


def _only_training(run_name: str, streams: set[str]) -> ReplayFilter:
    """The training's events and whatever else is in their `streams`, which are noted.

    A stranger's or unreadable record stops a stream also here; an unreadable one may come first.
    """
    training = training_id(run_name)

    def is_wanted(parsed: ParsedRecord) -> bool:
        if parsed.stream is None:
            return False
        if parsed.envelope is not None and parsed.envelope.training_id == training:
            streams.add(parsed.stream)
        return parsed.envelope is None or parsed.stream in streams

    return ReplayFilter(wanted=is_wanted)
