"""Compares the live tables, at one snapshot, with a replay to their positions."""

import logging
from collections.abc import Mapping
from typing import NamedTuple

from consumers.database.connection import connected
from consumers.database.shape import find_problems
from consumers.errors import MismatchError
from consumers.log.reader import LOOK_AT, LastRecord, LogReader, TopicPartition
from consumers.projection.positions import (
    Positions,
    check_records,
    load_last_records,
    load_positions,
    read_state,
)
from consumers.rebuild.hashing import NAMES, TableHash, hash_tables
from consumers.rebuild.live_order import LiveOrder, describe_unordered, read_live_order
from consumers.rebuild.replay import Replay
from consumers.tables import SCHEMA, STATE_TABLES

logger = logging.getLogger(__name__)

STATE_NAMES = frozenset(str(table.__tablename__) for table in STATE_TABLES)


class Comparison(NamedTuple):
    """Of the live tables with the replay."""

    is_same_log: bool
    """False: the tables were made from another log and were not compared."""
    different: list[str]

    @property
    def is_equal(self) -> bool:
        """Whether they were compared and are equal."""
        return self.is_same_log and not self.different


class LiveTables(NamedTuple):
    """The live tables at one moment."""

    log_id: str | None
    positions: Positions
    last: Mapping[TopicPartition, LastRecord]
    hashes: dict[str, TableHash]
    """Of the tables that lack nothing."""
    broken: frozenset[str | None]
    """The others; None: all."""
    order: LiveOrder


def read_live(url: str) -> LiveTables:
    """Positions and hashes of one snapshot, whatever is projected meanwhile."""
    with connected(url, "rebuild snapshot") as connection:
        connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
        with connection.cursor() as cursor:
            problems = find_problems(cursor, [SCHEMA])
            broken = frozenset(problem.table for problem in problems if problem.is_fatal)
            if problems:
                logger.warning("%s", "; ".join(problem.text for problem in problems))
            if None in broken or broken & STATE_NAMES:
                return LiveTables(None, {}, {}, {}, broken, LiveOrder({}))
            return LiveTables(
                read_state(cursor, SCHEMA).log_id,
                load_positions(cursor, SCHEMA),
                load_last_records(cursor, SCHEMA),
                hash_tables(cursor, SCHEMA, [name for name in NAMES if name not in broken]),
                broken,
                read_live_order(cursor, SCHEMA),
            )


def compare_with(
    live: LiveTables,
    reader: LogReader,
    url: str,
    replay: Replay,
    schema: str,
    *,
    from_shorter_log: bool = False,
) -> Comparison:
    """Replay to the live tables' positions and compare; a table that lacks something differs."""
    if None in live.broken or live.broken & STATE_NAMES:
        logger.warning("without their positions the tables cannot be compared with the log")
        return Comparison(is_same_log=False, different=_named(live))
    if live.log_id not in {None, reader.log_id}:
        if not any(reader.end_offsets(reader.partitions()).values()):
            message = (
                f"the tables were made from the log {live.log_id}, and the configured log is empty;"
                f" nothing was changed. {LOOK_AT}"
            )
            raise MismatchError(message)
        logger.warning("the tables were made from another log (%s): not compared", live.log_id)
        return Comparison(is_same_log=False, different=[])
    try:
        check_records(live.positions, live.last, reader)
    except MismatchError as error:
        if not from_shorter_log or not any(reader.end_offsets(reader.partitions()).values()):
            raise
        logger.warning("not compared: %s", error)
        return Comparison(is_same_log=False, different=[])
    replay.advance(live.positions, live.order)
    with connected(url, "rebuild hash") as connection, connection.cursor() as cursor:
        replayed = hash_tables(cursor, schema, live.hashes)
    changed = {name for name, hashed in live.hashes.items() if hashed != replayed[name]}
    different = [name for name in NAMES if name in changed | live.broken]
    if different:
        logger.warning("tables that differ from the log: %s", ", ".join(different))
        with connected(url, "rebuild order") as connection, connection.cursor() as cursor:
            problem = describe_unordered(cursor, SCHEMA, cursor, schema)
        if problem is not None:
            logger.warning("%s", problem)
    return Comparison(is_same_log=True, different=different)


def _named(live: LiveTables) -> list[str]:
    """The tables that lack something; of a whole schema, every table."""
    return [*NAMES] if None in live.broken else sorted(str(name) for name in live.broken)
