"""Shipped records of this machine's spool, as the shipper prunes them."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from consumers.log.held_streams import not_held, open_spool
from schemas.local_log import to_microseconds

ROWS = 2000
"""Deleted in one transaction, a few milliseconds: an emitter's commits hardly wait."""
PAUSE_S = 0.01
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
    """Bytes of their values."""


def find_shipped(path: Path, target: str, keep: timedelta) -> ShippedRecords:
    """What a Kafka with this log id has since before `keep`. UnreachableError."""
    before = to_microseconds(datetime.now(UTC) - keep)
    if not path.exists():
        return ShippedRecords(path, target, before, 0, 0)
    with open_spool(path) as connection:
        count, size = connection.execute(
            f"SELECT count(*), coalesce(sum(length(value)), 0) FROM records WHERE"
            f" {SHIPPED}{not_held(connection)}",
            {"target": target, "before": before},
        ).fetchone()
    return ShippedRecords(path, target, before, count, size)


def delete_shipped(found: ShippedRecords) -> int:
    """Delete them, oldest first, and shrink the file; how many are gone.

    Killed in the middle, the rest stays.
    """
    if not found.num_records:
        return 0
    gone = 0
    with open_spool(found.path) as connection:
        kept = not_held(connection)
        while True:
            deleted = connection.execute(
                "DELETE FROM records WHERE position IN (SELECT position FROM records WHERE"
                f" {SHIPPED}{kept} ORDER BY position LIMIT {ROWS})",
                {"target": found.target, "before": found.before},
            ).rowcount
            gone += deleted
            if deleted < ROWS:
                connection.execute("VACUUM")
                return gone
            time.sleep(PAUSE_S)
