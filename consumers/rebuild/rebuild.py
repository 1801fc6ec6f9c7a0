"""Makes the live tables what the log says, in place.

The log is replayed into a schema of its own while projectors go on. Then, in one transaction that
projectors wait for and readers do not notice, the replay is brought to exactly the live positions,
compared table by table, and the rows that differ are deleted, updated and inserted. Running
projectors notice by the new build id.
"""

import logging
import time
from collections.abc import Sequence
from typing import NamedTuple

from consumers.database.connection import Cursor, connected
from consumers.database.dependants import TABLE_NAMES
from consumers.errors import CuaProjectError, NotFoundError
from consumers.fold.fold import EVERYTHING, ReplayFilter
from consumers.fold.parse import ParsedRecord
from consumers.log.reader import LogReader
from consumers.progress import ReplayProgress
from consumers.projection.positions import Positions
from consumers.rebuild.built import STAGING, check_name
from consumers.rebuild.hashing import NAMES, count_rows
from consumers.rebuild.live_tables import LiveTables, is_of_log, load_live, read_live
from consumers.rebuild.mend import make_missing, require
from consumers.rebuild.merge import compare_table, merge
from consumers.rebuild.paused import while_paused
from consumers.rebuild.preparation import check_database, schema_lock
from consumers.rebuild.replay import Replay, check_beginning
from consumers.rebuild.side_schema import analyze, finish_tables, side_schema, write_views
from consumers.tables import SCHEMA
from schemas.ids import training_id

logger = logging.getLogger(__name__)

NEAR_RECORDS = 2_000
"""Applied while projectors are paused; takes some tens of milliseconds."""
CATCH_UPS = 20
"""Rounds of catching up; after them projectors are paused whatever the backlog."""


class RebuildReport(NamedTuple):
    """What was compared or built."""

    events: int
    seconds: float
    equal: bool
    """The live tables were equal to the replay; True of tables that were never filled."""
    changed: int
    """Rows of them that differed: corrected, unless it was only compared. 0 of tables that were
    never filled."""
    changed_rows: dict[str, int]
    """The same by table."""
    tables: dict[str, int]
    """Rows of every table in the replay."""
    different: list[str]
    """Live tables that differed from the replay, or that lacked something."""
    missing: list[str]
    """What the live tables lacked, in words: repaired, unless it was only compared."""
    was_empty: bool
    """They were never filled."""
    schema: str
    """The schema that was compared or built."""
    positions: Positions
    """Of the replay."""


def compare(
    reader: LogReader, url: str, *, progress: ReplayProgress | None = None
) -> RebuildReport:
    """Compare the live tables with a replay of the log to their positions; changes nothing.

    CuaProjectError when the log lacks its beginning, or while a migration or another rebuild runs;
    MismatchError when the log lacks records that the tables have read, or the tables were made from
    another log.
    """
    check_beginning(reader)
    with schema_lock(url):
        return _Rebuild(reader, url, progress, is_check=True).run()


def rebuild(
    reader: LogReader,
    url: str,
    *,
    from_shorter_log: bool = False,
    adopt_log: bool = False,
    progress: ReplayProgress | None = None,
) -> RebuildReport:
    """Give the live tables the rows that the log gives, up to where they have read it.

    Tables that were never filled, or filled from another log, are filled from the whole log. Makes
    again whatever is missing of them. `from_shorter_log`: also from a log that lacks records that
    the tables have read. `adopt_log`: also from another log than the one that the tables were made
    from. Otherwise raises what `compare` raises; CuaProjectError, naming it, for an object of a
    user's that refuses a change; LimitExceededError when other sessions keep rows locked. Then no
    row has changed.
    """
    check_beginning(reader)
    with schema_lock(url):
        check_database(url)
        made = _Rebuild(
            *(reader, url, progress), from_shorter_log=from_shorter_log, adopt_log=adopt_log
        )
        report = made.run()
        write_views(url)
        return report


class _Found(NamedTuple):
    """What a comparison found."""

    changed: dict[str, int]
    """Rows that differed, of every table that has some."""
    was_empty: bool


class _Rebuild:
    """One rebuild or comparison."""

    def __init__(
        self,
        reader: LogReader,
        url: str,
        progress: ReplayProgress | None,
        *,
        is_check: bool = False,
        from_shorter_log: bool = False,
        adopt_log: bool = False,
    ) -> None:
        self._reader = reader
        self._url = url
        self._progress = progress
        self._is_check = is_check
        self._from_shorter_log = from_shorter_log
        self._adopt_log = adopt_log

    def run(self) -> RebuildReport:
        """Replay, compare and, unless it is a check, correct."""
        began = time.monotonic()
        live = read_live(self._url)
        missing = [problem.text for problem in live.problems]
        if missing:
            logger.warning("%s", "; ".join(missing))
        is_of = is_of_log(
            *(live, self._reader),
            from_shorter_log=self._from_shorter_log,
            adopt_log=self._adopt_log,
        )
        if self._is_check and not is_of:
            # Without positions there is nothing to replay to.
            return _without_rows(live, missing, time.monotonic() - began)
        with (
            side_schema(self._url, STAGING),
            Replay(
                *(self._reader, self._url, STAGING),
                replay_filter=ReplayFilter(dropped=live.dropped if is_of else {}),
                progress=self._progress,
            ) as replay,
        ):
            found = self._compared(replay, live, is_of=is_of)
            differs = {*found.changed, *_lacking(live)}
            return RebuildReport(
                events=replay.num_events,
                seconds=time.monotonic() - began,
                equal=is_of and not differs and not missing,
                changed=sum(found.changed.values()),
                changed_rows=found.changed,
                tables=count_rows(self._url, STAGING),
                different=[name for name in NAMES if name in differs],
                missing=missing,
                was_empty=found.was_empty,
                schema=SCHEMA,
                positions=replay.positions,
            )

    def _compared(self, replay: Replay, live: LiveTables, *, is_of: bool) -> _Found:
        self._approach(replay, follows=is_of and (self._is_check or bool(live.positions)))
        with connected(self._url, "rebuild analyze") as connection, connection.cursor() as cursor:
            analyze(cursor, STAGING)
            connection.commit()

        def work(cursor: Cursor) -> _Found:
            now = load_live(cursor)
            logs = {live.log_id, self._reader.log_id}
            if now.log_id not in logs:
                message = (
                    "the tables were given another log (`run --adopt-log`) during the replay; no"
                    " row was changed. Run the same command again"
                )
                raise CuaProjectError(message)
            if is_of and replay.lag(now.positions):
                replay.advance(now.positions)
            if not self._is_check:
                make_missing(cursor, now.problems)
            names = [name for name in NAMES if name not in now.broken]
            found = {
                name: compare_table(cursor, name, STAGING)
                for name in (names if self._is_check else TABLE_NAMES)
            }
            changed = {name: one.changed for name, one in found.items() if one.changed}
            has_rows = any(found[name].live_rows for name in names)
            was_empty = not (now.positions or now.broken or has_rows)
            differs = {name: changed[name] for name in NAMES if name in changed and not was_empty}
            if differs:
                logger.warning("tables that differ from the log: %s", ", ".join(differs))
            if not self._is_check:
                merge(cursor, list(changed), STAGING)
                require(cursor)
            return _Found(differs, was_empty=was_empty)

        return while_paused(self._url, work)

    def _approach(self, replay: Replay, *, follows: bool) -> None:
        """Advance until little is left to do while projectors are paused."""
        until = self._target(replay, follows=follows)
        for _ in range(CATCH_UPS):
            replay.advance(until)
            until = self._target(replay, follows=follows)
            if replay.lag(until) <= NEAR_RECORDS:
                return

    def _target(self, replay: Replay, *, follows: bool) -> Positions:
        """Where the live tables are, else the end of the log."""
        return read_live(self._url).positions if follows else replay.log_end()


def _without_rows(live: LiveTables, missing: Sequence[str], seconds: float) -> RebuildReport:
    """Of a check that could not compare the rows."""
    return RebuildReport(
        events=0,
        seconds=seconds,
        equal=False,
        changed=0,
        changed_rows={},
        tables={},
        different=[name for name in NAMES if name in _lacking(live)],
        missing=list(missing),
        was_empty=False,
        schema=SCHEMA,
        positions=live.positions,
    )


def _lacking(live: LiveTables) -> set[str]:
    """The tables that lack something; of a whole schema every table."""
    lacking = {problem.table for problem in live.problems}
    return {*NAMES} if None in lacking else {str(name) for name in lacking}


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

    UsageError when the schema exists; NotFoundError when the training has no event before the
    positions; CuaProjectError when the log lacks its beginning, or while a migration or rebuild
    runs.
    """
    began = time.monotonic()
    check_name(schema)
    check_beginning(reader)
    end = reader.end_offsets(reader.partitions()) if until is None else until
    streams: set[str] = set()
    replay_filter = EVERYTHING if run_name is None else _only_training(run_name, streams)
    with schema_lock(url), side_schema(url, schema):
        with Replay(reader, url, schema, replay_filter=replay_filter, progress=progress) as replay:
            replay.advance(end)
        if run_name is not None and not streams:
            message = f"the training {run_name!r} has no event before --until"
            raise NotFoundError(message)
        finish_tables(url, schema)
    return RebuildReport(
        events=replay.num_events,
        seconds=time.monotonic() - began,
        equal=True,
        changed=0,
        changed_rows={},
        tables=count_rows(url, schema),
        different=[],
        missing=[],
        was_empty=False,
        schema=schema,
        positions=end,
    )


def _only_training(run_name: str, streams: set[str]) -> ReplayFilter:
    """The training's events and whatever else is in their `streams`, which are noted.

    A stranger's or unreadable record stops a stream also here; an unreadable one may come first.
    """
    training = training_id(run_name)

    def is_wanted(parsed: ParsedRecord) -> bool:
        is_named = parsed.envelope is not None and parsed.envelope.training_id == training
        if is_named and not parsed.is_foreign:
            streams.add(parsed.stream)
        return parsed.envelope is None or parsed.stream in streams

    return ReplayFilter(wanted=is_wanted)
