"""Long commands wait until the database and the log are back, and go on.

What was there when the command began is expected to come back; a server that refuses is not waited
for.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import psycopg2
from sqlalchemy.exc import DBAPIError

from consumers.database.connection import connected
from consumers.database.lost_session import outage_of
from consumers.errors import SchemaBusyError, UnreachableError
from consumers.log.reader import LogReader
from consumers.projection.startup import wait_until_reachable

logger = logging.getLogger(__name__)

MOST = 10
"""Outages of one command; after them something ends our sessions again and again."""
PAUSE_S = 1.0
DEAD_SESSION_S = 90.0
"""How long our own lost session may keep its locks: until the server notices."""

Result = TypeVar("Result")


def wait_out_outages(attempt: Callable[[], Result], url: str, reader: LogReader) -> Result:
    """What `attempt` returns; called again each time the database and the log are back.

    Raises any other error, and after `MOST` outages theirs.
    """
    num_outages, ended_at = 0, 0.0
    while True:
        try:
            return attempt()
        except (UnreachableError, psycopg2.Error, DBAPIError) as error:
            reason = outage_of(error)
            num_outages += 1
            if reason is None or num_outages > MOST:
                raise
            logger.warning("%s; going on when it is back", reason)
        except SchemaBusyError:
            if not num_outages or time.monotonic() - ended_at > DEAD_SESSION_S:
                raise
            time.sleep(PAUSE_S)
            continue
        time.sleep(PAUSE_S)
        wait_until_reachable(lambda: _look(url, reader), threading.Event())
        logger.info("the database and the log answer; going on")
        ended_at = time.monotonic()


def _look(url: str, reader: LogReader) -> None:
    """UnreachableError unless both answer."""
    try:
        with connected(url, "outage") as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except psycopg2.Error as error:
        raise UnreachableError(str(error).strip()) from None
    reader.end_offsets(reader.partitions())
