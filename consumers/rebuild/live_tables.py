"""The live tables at one moment: of which log they are, how much they have read, what they lack."""

import logging
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from consumers.database.connection import Cursor, connected
from consumers.database.shape import Problem, find_problems
from consumers.errors import MismatchError
from consumers.log.reader import LOOK_AT, LastRecord, LogReader, TopicPartition
from consumers.projection.positions import (
    Positions,
    check_records,
    load_last_records,
    load_positions,
    read_state,
)
from consumers.projection.stored import load_dropped
from consumers.tables import SCHEMA, STATE_TABLES
from schemas.home import describe_growth

logger = logging.getLogger(__name__)

STATE_NAMES = frozenset(str(table.__tablename__) for table in STATE_TABLES)


class LiveTables(NamedTuple):
    """The live tables at one moment."""

    log_id: str | None
    positions: Positions
    last: Mapping[TopicPartition, LastRecord]
    problems: list[Problem]
    """What they lack."""
    dropped: Mapping[str, Collection[str]] = MappingProxyType({})
    """What operators dropped that they have read (`stored.load_dropped`)."""

    @property
    def broken(self) -> frozenset[str | None]:
        """Tables that cannot be read or written whole; None: all."""
        return frozenset(problem.table for problem in self.problems if problem.is_fatal)

    @property
    def has_state(self) -> bool:
        """Whether they say how far they have read which log."""
        return None not in self.broken and not self.broken & STATE_NAMES


def read_live(url: str) -> LiveTables:
    """One snapshot, whatever is projected meanwhile."""
    with connected(url, "rebuild snapshot") as connection:
        connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
        with connection.cursor() as cursor:
            return load_live(cursor)


def load_live(cursor: Cursor) -> LiveTables:
    """As the cursor's transaction sees them; without positions where those are broken."""
    live = LiveTables(None, {}, {}, find_problems(cursor, [SCHEMA]))
    if not live.has_state:
        return live
    return live._replace(
        log_id=read_state(cursor, SCHEMA).log_id,
        positions=load_positions(cursor, SCHEMA),
        last=load_last_records(cursor, SCHEMA),
        dropped=load_dropped(cursor, SCHEMA),
    )


def is_of_log(
    live: LiveTables,
    reader: LogReader,
    *,
    from_shorter_log: bool = False,
    adopt_log: bool = False,
) -> bool:
    """Whether the log has what the tables have read, so that a replay can stop where they are.

    False, with a warning: they do not say, or are of another log or the log is shorter and may be.
    MismatchError when that may not be, or the log is empty.
    """
    if not live.has_state:
        logger.warning(
            "the tables have no position in the log, so they cannot be compared with it; a rebuild"
            " fills them from the whole log"
        )
        return False
    is_empty = not any(reader.end_offsets(reader.partitions()).values())
    if live.log_id not in {None, reader.log_id}:
        if is_empty:
            message = (
                f"the tables were made from the log {live.log_id}, and the configured log is empty;"
                f" nothing was changed. {LOOK_AT}"
            )
            raise MismatchError(message)
        if (problem := describe_growth(live.log_id or "", reader.log_id)) is not None:
            raise MismatchError(problem)
        if not adopt_log:
            message = (
                f"the tables were made from another log, {live.log_id}, and the configured log is"
                f" {reader.log_id}; nothing was changed. If the configured log contains the other's"
                " history, continue with `cua-project run --adopt-log`; otherwise `cua-project"
                " rebuild --adopt-log` replaces all rows with the configured log's"
            )
            raise MismatchError(message)
        logger.warning(
            "the tables were made from another log (%s); their rows are replaced by those of the"
            " configured log",
            live.log_id,
        )
        return False
    try:
        check_records(live.positions, live.last, reader)
    except MismatchError as error:
        if not from_shorter_log or is_empty:
            raise
        logger.warning("the tables are not compared with the log: %s", error)
        return False
    return True
