"""Which session of the database holds what: for messages, and for ending one."""

from datetime import datetime
from typing import NamedTuple

from psycopg2.errors import InsufficientPrivilege

from consumers.database.connection import GROUP_CLASS, Connection, Cursor
from consumers.tables import OPS_SCHEMA, SCHEMA

ENDING_MS = 5_000
"""How long to wait for the end of a session that was asked to end."""

SESSION = (
    "session.pid, coalesce(session.usename, 'another role'),"
    " coalesce(session.application_name, ''), coalesce(session.state, 'in a state hidden from this"
    " role'), greatest(0, coalesce(extract(epoch FROM clock_timestamp() - session.xact_start),"
    " 0))::float, coalesce(session.wait_event = 'ClientRead', false), session.query_start, (SELECT"
    " array_agg(DISTINCT relation::regclass::text) FROM pg_locks JOIN pg_class ON pg_class.oid ="
    " relation WHERE pg_locks.pid = session.pid AND granted AND mode <> 'AccessShareLock' AND"
    " relkind IN ('r', 'p') AND database = (SELECT oid FROM pg_database WHERE datname ="
    f" current_database()) AND relnamespace IN (to_regnamespace('{SCHEMA}'),"
    f" to_regnamespace('{OPS_SCHEMA}')))"
)
_OF_GROUP = (
    "locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname ="
    f" current_database()) AND classid = {GROUP_CLASS} AND objsubid = 2 AND granted AND objid ="
    " (%(group)s::bigint & 4294967295)::oid"
)


class Session(NamedTuple):
    """A session of the database, as pg_stat_activity and pg_locks show it."""

    pid: int
    role: str
    application: str
    state: str
    """`active`, `idle in transaction` ..."""
    transaction_s: float
    """Age of its transaction; 0 when it has none, or when the role may not see it."""
    waits_for_client: bool
    statement_began_at: datetime | None
    locked: list[str] | None
    """Our tables on which it holds more than a reader's lock."""

    def __str__(self) -> str:
        """`process 4711 (alice, psql, idle in transaction for 35 s), which holds ...`."""
        details = [self.role, self.application, f"{self.state} for {self.transaction_s:.0f} s"]
        if not self.transaction_s:
            details[2] = self.state
        held = f", which has locked {', '.join(self.locked)}" if self.locked else ""
        return f"process {self.pid} ({', '.join(filter(None, details))}){held}"


def blockers_of_group(cursor: Cursor, group: int) -> list[Session]:
    """The sessions that a group's sessions wait for, none of the group's own; by process id."""
    cursor.execute(
        f"WITH members AS (SELECT pid FROM pg_locks WHERE {_OF_GROUP}), blockers AS (SELECT"
        " DISTINCT unnest(pg_blocking_pids(pid)) AS pid FROM members) SELECT"
        f" {SESSION} FROM blockers JOIN pg_stat_activity AS session USING (pid) WHERE pid NOT IN"
        " (SELECT pid FROM members) ORDER BY pid",
        {"group": group},
    )
    return [Session(*row) for row in cursor.fetchall()]


def lock_holders(cursor: Cursor, *schemas: str) -> list[Session]:
    """Other sessions with a lock, even a reader's, on a table of these schemas; by process id."""
    cursor.execute(
        f"SELECT {SESSION} FROM pg_stat_activity AS session WHERE pid <> pg_backend_pid() AND"
        " EXISTS (SELECT FROM pg_locks AS held JOIN pg_class ON pg_class.oid = held.relation WHERE"
        " held.pid = session.pid AND held.granted AND held.database = (SELECT oid FROM pg_database"
        " WHERE datname = current_database()) AND pg_class.relnamespace IN (SELECT oid FROM"
        " pg_namespace WHERE nspname = ANY(%s))) ORDER BY pid",
        (list(schemas),),
    )
    return [Session(*row) for row in cursor.fetchall()]


def advisory_lock_holders(cursor: Cursor, key: int) -> list[Session]:
    """Other sessions that hold an advisory lock of one 64-bit key (the schema lock is one)."""
    cursor.execute(
        f"SELECT {SESSION} FROM pg_stat_activity AS session WHERE pid <> pg_backend_pid() AND"
        " EXISTS (SELECT FROM pg_locks AS held WHERE held.pid = session.pid AND held.granted AND"
        " held.locktype = 'advisory' AND held.objsubid = 1 AND held.database = (SELECT oid FROM"
        " pg_database WHERE datname = current_database()) AND held.classid = ((%(key)s >> 32) &"
        " 4294967295)::oid AND held.objid = (%(key)s & 4294967295)::oid) ORDER BY pid",
        {"key": key},
    )
    return [Session(*row) for row in cursor.fetchall()]


def end_session(connection: Connection, pid: int) -> str | None:
    """End a session, its transaction rolled back; None, or why that failed and what helps.

    A role may end its own sessions and those of roles whose member it is.
    """
    with connection, connection.cursor() as cursor:
        try:
            cursor.execute("SELECT pg_terminate_backend(%s, %s)", (pid, ENDING_MS))
        except InsufficientPrivilege as error:
            return f"{error.diag.message_primary}; run all projectors as one role (docs/roles.md)"
        row = cursor.fetchone()
        return None if row is not None and row[0] else "it did not end"
