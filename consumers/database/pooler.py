"""Connection poolers (PgBouncer): recognised, and refused where sessions share a server process.

Our locks, leases and settings belong to a session. A pooler in session mode gives each of ours a
server process until we disconnect; in transaction or statement mode our locks would be held by
whoever comes next, and our settings change other programs' queries.
"""

import contextlib

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812

from consumers.database.location import PARAMETER_REFUSED, open_watched, without_password
from consumers.errors import CuaProjectError, UnreachableError, UsageError

PAGE = "docs/roles.md (PgBouncer)"
SOME_OPTION = "-c search_path=public"
"""Any."""
ROUNDS = 4
"""Of asking both sessions; whoever else uses the pool may take a server process in between."""

_own_sessions: set[str] = set()
"""URLs whose pooler gives each session a server process of its own."""


def refuses_options(error: Exception) -> bool:
    """Whether a pooler has refused the connection for its startup options."""
    return PARAMETER_REFUSED in str(error)


def takes_options(url: str) -> bool:
    """Whether a session may name options; True where none can be opened, which is for the next."""
    try:
        open_watched(url, options=SOME_OPTION).close()
    except (psycopg2.OperationalError, CuaProjectError) as error:
        if refuses_options(error):
            return False
    return True


def is_pooled(connection: Connection) -> bool:
    """Whether another program answers in the server's place: it gives its own process number.

    `connection`: in autocommit.
    """
    return bool(_server_process(connection) != connection.info.backend_pid)


def require_own_session(connection: Connection, url: str) -> None:
    """UsageError for a pooler that shares server processes; asked once in a process.

    UnreachableError: it has no process for a second session, without which nothing works either.
    `connection`: a pooled one in autocommit, whose session has changed nothing yet.
    """
    if url in _own_sessions:
        return
    try:
        with contextlib.closing(open_watched(url, options="")) as other:
            other.autocommit = True
            pairs = [(_server_process(connection), _server_process(other)) for _ in range(ROUNDS)]
    except psycopg2.OperationalError as error:
        message = (
            f"the connection pooler at {without_password(url)} gave one session and no second"
            f" ({str(error).strip().splitlines()[0]}); raise its pool_size to 20: {PAGE}"
        )
        raise UnreachableError(message) from None
    ours, theirs = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
    if len(ours) > 1 or len(theirs) > 1 or ours == theirs:
        message = (
            f"PostgreSQL at {without_password(url)} is a connection pooler that gives one server"
            " process to several sessions (PgBouncer's pool_mode transaction or statement), where"
            " locks and settings would be other programs'; set pool_mode=session for a database"
            f" entry of its own, and name that in DATABASE_URL: {PAGE}"
        )
        raise UsageError(message)
    _own_sessions.add(url)


def _server_process(connection: Connection) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        row = cursor.fetchone()
        assert row is not None  # noqa: S101  # a SELECT of a function has one row
        return int(row[0])
