"""What waits in this machine's spool to be sent to Kafka."""

import sqlite3
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from consumers.errors import UnreachableError
from consumers.log.held_streams import BUSY_TIMEOUT_S, num_held
from schemas.local_log import from_microseconds
from schemas.readable_log import UnreadableLogError, read_log_file


class Waiting(NamedTuple):
    """Records that the log does not have yet."""

    num_records: int
    seconds: float
    """Since the first was appended; 0 without any."""


def read_waiting(path: Path, target: str | None, now: datetime) -> Waiting:
    """What the log with this id does not have of the spool at `path`. UnreachableError.

    `target` None: Kafka cannot be asked for its id; of the log that has most of it.
    """
    if not path.exists():
        return Waiting(0, 0.0)

    def query(connection: sqlite3.Connection) -> tuple[int, int | None]:
        last = "SELECT target FROM cursors ORDER BY next_position DESC LIMIT 1"
        to = target if target is not None else (connection.execute(last).fetchone() or [""])[0]
        # Positions have no gaps, and only what was sent is deleted: nothing has to be counted.
        number, since = connection.execute(
            "SELECT next_position - sent, (SELECT appended_at FROM records WHERE position >= sent"
            " ORDER BY position LIMIT 1) FROM head, (SELECT coalesce(max(next_position), 1) AS sent"
            " FROM cursors WHERE target = ?)",
            (to,),
        ).fetchone()
        return int(number) + num_held(connection, to), since

    try:
        number, since = read_log_file(path, BUSY_TIMEOUT_S, query)
    except (sqlite3.Error, UnreadableLogError, OSError) as error:
        message = f"the spool {path} cannot be read: {error}"
        raise UnreachableError(message) from error
    age_s = 0.0 if since is None else (now - from_microseconds(since)).total_seconds()
    return Waiting(number, max(0.0, age_s))
