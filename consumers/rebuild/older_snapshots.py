"""Transactions whose snapshot is older than the tables that come in.

They would find those tables empty: a row is invisible to a snapshot from before its commit,
whatever its table is called now. So a swap waits until they have gone, as CREATE INDEX CONCURRENTLY
does. One from after the replay has the state that the log had then, or seconds before, when what
was added last was not replayed yet: a swap that waited for those too would never end where long
statements overlap. Knows nothing of locks.
"""

from consumers.database.blockers import SESSION, Session
from consumers.database.connection import Cursor
from consumers.tables import SCHEMA

# Autovacuum has no user, what vacuums sees no rows, and a parallel worker goes with its leader (the
# kind of another role's session is hidden from a plain role). Whoever waits to change the positions
# waits for the swap, and looks at the tables again after it.
_TRANSACTIONS = (
    f"SELECT {SESSION}, virtual.virtualtransaction, backend_xmin::text IN (SELECT"
    " backend_xid::text FROM pg_stat_activity WHERE backend_xid IS NOT NULL UNION ALL SELECT"
    " transaction::text FROM pg_prepared_xacts) FROM pg_stat_activity AS session JOIN pg_locks AS"
    " virtual ON virtual.pid = session.pid AND virtual.locktype = 'virtualxid' AND"
    " virtual.virtualxid = virtual.virtualtransaction WHERE session.pid <> pg_backend_pid() AND"
    " datname = current_database() AND usesysid IS NOT NULL AND coalesce(backend_type, '') <>"
    " 'parallel worker' AND age(backend_xmin) > age(%(limit)s::xid) AND NOT EXISTS (SELECT FROM"
    " pg_stat_progress_vacuum AS vacuum WHERE vacuum.pid = session.pid) AND NOT EXISTS (SELECT FROM"
    " pg_locks AS awaited WHERE awaited.pid = session.pid AND NOT awaited.granted AND"
    f" awaited.relation = to_regclass('{SCHEMA}.reader_position')) ORDER BY session.pid"
)


class OlderSnapshots:
    """Those that were there when the replay had come to the log's end. Not thread-safe."""

    def __init__(self) -> None:
        self._limit: str | None = None
        self._members: frozenset[str] = frozenset()

    def note(self, cursor: Cursor) -> None:
        """The tables are filled, and everything is committed. Only the first call counts."""
        if self._limit is not None:
            return
        cursor.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::xid::text")
        row = cursor.fetchone()
        assert row is not None  # noqa: S101  # a SELECT of a function has one row
        self._limit = row[0]
        self._members = frozenset(name for _, name, _ in self._read(cursor))

    def remaining(self, cursor: Cursor) -> list[Session]:
        """Those that are still there, by process id."""
        if self._limit is None:
            return []
        found = self._read(cursor)
        # One that came later sees the rows: it only looks old while an older writer has not ended.
        # Without such a writer it has imported another session's older snapshot.
        return [
            session
            for session, name, is_held_back in found
            if name in self._members or not is_held_back
        ]

    def _read(self, cursor: Cursor) -> list[tuple[Session, str, bool]]:
        """Transactions that may not see every row, their names, and whether a writer explains it.

        A snapshot that does not see a transaction has an xmin that is not younger than it.
        """
        # Within a transaction PostgreSQL shows the sessions of the first look.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(_TRANSACTIONS, {"limit": self._limit})
        return [(Session(*row[:-2]), row[-2], row[-1]) for row in cursor.fetchall()]
