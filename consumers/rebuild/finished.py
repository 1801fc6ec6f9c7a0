"""A finished replay that could not be swapped in yet; the next rebuild continues with it."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from consumers.database.connection import connected
from consumers.database.migrate import newest_revision
from consumers.database.side_schemas import SideSchema, drop_debris, find_side_schemas
from consumers.errors import CuaProjectError, MismatchError
from consumers.fold.projectors.registry import catalogue_hash
from consumers.log.reader import LogReader
from consumers.projection.positions import (
    check_records,
    load_last_records,
    load_positions,
)
from consumers.rebuild.side_schema import (
    drop_unless_finished,
    locked_schema,
    side_schema,
    unmark,
)
from consumers.tables import OPS_SCHEMA, PROJECTION_VERSION

logger = logging.getLogger(__name__)

PURPOSE = "rebuild"


class StaleError(Exception):
    """Operators gave up records after the replay had begun."""


class Finished(NamedTuple):
    """What a finished replay found."""

    is_same_log: bool
    different: list[str]
    events: int
    drops: str
    """Hash of what operators gave up, which the replay honoured."""


def finished_side(schema: str, log_id: str, finished: Finished) -> SideSchema:
    """The mark of a schema that outlives this process."""
    details = {**_code(log_id), **finished._asdict()}
    return SideSchema(schema, PURPOSE, is_finished=True, details=details)


def discard(url: str, schema: str) -> None:
    """Let the schema be dropped after all."""
    unmark(url, schema, PURPOSE)


@contextmanager
def filled_schema(
    url: str, reader: LogReader, continued: str | None = None, *, keeps: bool = False
) -> Iterator[tuple[str, Finished | None]]:
    """A finished replay of this code and log, else the schema `continued`, or a new one, with None.

    One that has records which the log no longer has is none of this log.

    On the way out it is dropped unless it is finished. `keeps`: nor after an outage.
    """
    found = _find(url, reader)
    if found is None:
        with side_schema(url, PURPOSE, continued, keeps=keeps) as name:
            yield name, None
        return
    name, finished = found
    logger.info("continuing with the finished replay in the schema %s", name)
    with locked_schema(url, name) as keeper:
        drop_debris(keeper)
        try:
            yield name, finished
        finally:
            drop_unless_finished(keeper, name)


def _find(url: str, reader: LogReader) -> tuple[str, Finished] | None:
    """The newest that fits; those that no longer do are unmarked, and so dropped as debris."""
    with connected(url, "finished") as connection, connection, connection.cursor() as cursor:
        sides = [
            side
            for side in find_side_schemas(cursor)
            if side.purpose == PURPOSE and side.is_finished
        ]
    wanted = {**_code(reader.log_id), "drops": drops_hash(url)}
    for side in sides:
        try:
            if all(side.details.get(name) == value for name, value in wanted.items()):
                found = side.name, _read(side.details)
                _check_records(url, side.name, reader)
                return found
        except (TypeError, KeyError, ValueError, MismatchError):
            pass
        logger.info("the finished replay in the schema %s no longer fits; dropping it", side.name)
        unmark(url, side.name, PURPOSE)
    return None


def _check_records(url: str, schema: str, reader: LogReader) -> None:
    """MismatchError when the log lacks what the replay has read."""
    with connected(url, "finished") as connection, connection, connection.cursor() as cursor:
        positions, last = load_positions(cursor, schema), load_last_records(cursor, schema)
    check_records(positions, last, reader)


def _read(details: Mapping[str, object]) -> Finished:
    different, events = details["different"], details["events"]
    if not isinstance(different, list) or not isinstance(events, int):
        raise TypeError
    return Finished(
        bool(details["is_same_log"]), list(map(str, different)), events, str(details["drops"])
    )


def _code(log_id: str) -> dict[str, object]:
    return {
        "revision": newest_revision(),
        "version": PROJECTION_VERSION,
        "catalogue": catalogue_hash(),
        "log": log_id,
    }


def drops_hash(url: str) -> str:
    """Of everything that operators gave up."""
    with connected(url, "drops") as connection, connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(md5(string_agg(dropped::text, chr(10) ORDER BY id)), '') FROM"
            f" {OPS_SCHEMA}.operator_drop AS dropped"
        )
        row = cursor.fetchone()
        if row is None:
            message = "an aggregate has one row"
            raise CuaProjectError(message)
        return str(row[0])
