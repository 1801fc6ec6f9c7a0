"""Streams that wait for records which the log does not have, and since when.

A gap that a spool will fill closes within seconds of its shipping. One that stays is of records
that are gone: the topic is compacted, or its beginning was deleted.
"""

from datetime import datetime
from typing import NamedTuple

from consumers.database.connection import AWAY, Cursor, connected
from consumers.tables import SCHEMA

NUM_NAMED = 5


class WaitingStreams(NamedTuple):
    """Streams with a gap."""

    total: int
    first: list[str]
    """The first NUM_NAMED of them by their oldest waiting record."""
    topics: list[str]
    """Where those wait, sorted."""
    since: datetime | None
    """When the oldest of their waiting records was appended; None: no stream waits."""

    def seconds(self, now: datetime) -> float:
        """Age of the oldest record that waits; 0 when none does."""
        return 0.0 if self.since is None else max(0.0, (now - self.since).total_seconds())

    def describe(self) -> str:
        """Which they are, for messages; empty without any."""
        if not self.total:
            return ""
        more = f" and {self.total - len(self.first):,} more" if self.total > len(self.first) else ""
        verb = "waits" if self.total == 1 else "wait"
        return f"{', '.join(self.first)}{more} {verb} for records that the log does not have"


NO_GAPS = WaitingStreams(0, [], [], None)


def load_waiting(cursor: Cursor, schema: str = SCHEMA) -> WaitingStreams:
    """Every stream with a gap."""
    cursor.execute(f'SELECT count(*) FROM "{schema}".stream_position WHERE num_waiting > 0')
    (total,) = cursor.fetchone() or (0,)
    if not total:
        return NO_GAPS
    cursor.execute(
        f'SELECT stream, min(topic), min(appended_at) FROM "{schema}".unapplied_record WHERE'
        " state = 'waiting' GROUP BY stream ORDER BY 3, 1 LIMIT %s",
        (NUM_NAMED,),
    )
    rows = cursor.fetchall()
    if not rows:
        return NO_GAPS
    return WaitingStreams(
        total, [row[0] for row in rows], sorted({row[1] for row in rows}), rows[0][2]
    )


def gaps_at_end(url: str) -> WaitingStreams | None:
    """The same in a session of its own, for the summary of a command that has done its work.

    None while the database is away: that is no failure of the command.
    """
    try:
        with connected(url, "gaps") as connection, connection.cursor() as cursor:
            return load_waiting(cursor)
    except AWAY:
        return None
