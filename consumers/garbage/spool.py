"""Shipped records of this machine's spool, as the shipper prunes them."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from consumers.errors import UnreachableError
from schemas.local_log import to_microseconds

ROWS = 2000
"""Deleted in one transaction, a few milliseconds: an emitter's commits hardly wait."""
PAUSE_S = 0.01
BUSY_TIMEOUT_S = 30.0
SHIPPED = (
    "position < (SELECT coalesce(max(next_position), 1) FROM cursors WHERE target = :target) AND"
    " appended_at < :before"
)


class ShippedRecords(NamedTuple):
    """Records that Kafka has and that are old enough."""

    path: Path
    target: str
    """The log that they were shipped to."""
    before: int
    """Microseconds since 1970."""
    num_records: int
    size: int
    """Bytes of their values. The file does not shrink; it reuses the room."""


def num_unshipped(path: Path, target: str) -> int:
    """Records of the file that the target has not acknowledged."""
    if not path.exists():
        return 0
    with _open(path) as connection:
        return int(
            connection.execute(
                "SELECT count(*) FROM records WHERE position >= (SELECT"
                " coalesce(max(next_position), 1) FROM cursors WHERE target = ?)",
                (target,),
            ).fetchone()[0]
        )


def find_shipped(path: Path, target: str, keep: timedelta) -> ShippedRecords:
    """What a Kafka with this log id has since before `keep`. UnreachableError."""
    before = to_microseconds(datetime.now(UTC) - keep)
    if not path.exists():
        return ShippedRecords(path, target, before, 0, 0)
    with _open(path) as connection:
        count, size = connection.execute(
            f"SELECT count(*), coalesce(sum(length(value)), 0) FROM records WHERE {SHIPPED}",
            {"target": target, "before": before},
        ).fetchone()
    return ShippedRecords(path, target, before, count, size)


def delete_shipped(found: ShippedRecords) -> int:
    """Delete them, oldest first; how many are gone. Killed in the middle, the rest stays."""
    if not found.num_records:
        return 0
    gone = 0
    with _open(found.path) as connection:
        while True:
            deleted = connection.execute(
                "DELETE FROM records WHERE position IN (SELECT position FROM records WHERE"
                f" {SHIPPED} ORDER BY position LIMIT {ROWS})",
                {"target": found.target, "before": found.before},
            ).rowcount
            gone += deleted
            if deleted < ROWS:
                return gone
            time.sleep(PAUSE_S)


@contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        uri = f"{path.absolute().as_uri()}?mode=rw"
        with closing(
            sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        ) as connection:
            yield connection
    except sqlite3.Error as error:
        message = f"the spool {path} cannot be used: {error}"
        raise UnreachableError(message) from error
