"""Migrates a database to a revision of the tables, and compares it with their definition.

One advisory lock makes migrations and rebuilds mutually exclusive. The scripts are in the
checkout's `alembic` folder or, when installed, in `consumers/migrations`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from psycopg2.errors import LockNotAvailable
from sqlalchemy.exc import OperationalError

from consumers.database.blockers import advisory_lock_holders
from consumers.database.connection import Connection, Cursor, connected, schema_engine
from consumers.database.forbidden import forbidden
from consumers.database.known_revisions import scripts_folder
from consumers.database.lease import current_holder
from consumers.database.location import unreachable
from consumers.database.lost_session import lost_session
from consumers.database.repeatable import (
    is_stale,
    missing_views,
    write_repeatable,
)
from consumers.database.revision import Age, Revision, inspect_revision
from consumers.database.shape import find_problems
from consumers.errors import (
    CuaProjectError,
    NotFoundError,
    SchemaBusyError,
    UnreachableError,
)
from consumers.tables import OPS_SCHEMA, PROJECTION_VERSION, SCHEMA

SCHEMA_LOCK = 0x6375612D74726169
"""Advisory lock for changes of the schema; the bytes spell "cua-trai"."""
LOCK_TIMEOUT_S = 15
"""How long to wait for another migration or rebuild."""


def _config(connection: sa.Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(scripts_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


@contextmanager
def schema_connection(url: str, wait_s: int = LOCK_TIMEOUT_S) -> Iterator[sa.Connection]:
    """A transaction holding the schema lock.

    CuaProjectError when another migration or rebuild does not finish within `wait_s`;
    UnreachableError.
    """
    engine = schema_engine(url)
    try:
        with engine.begin() as connection:
            _lock(connection, wait_s)
            connection.execute(sa.text("SET LOCAL search_path TO public"))
            yield connection
    except OperationalError as error:
        raise unreachable(url, error) from None


def _lock(connection: sa.Connection, wait_s: int) -> None:
    connection.execute(sa.text(f"SET LOCAL lock_timeout = '{wait_s}s'"))
    try:
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": SCHEMA_LOCK})
    except OperationalError as error:
        if not isinstance(error.orig, LockNotAvailable):
            raise
        connection.rollback()
        raise schema_busy(connection.connection.driver_connection) from None


def schema_busy(connection: Connection) -> SchemaBusyError:
    """The error for a schema lock that another session holds; names the session."""
    with connection.cursor() as cursor:
        holders = advisory_lock_holders(cursor, SCHEMA_LOCK)
    listed = f": {', '.join(map(str, holders))}" if holders else ""
    message = f"another migration or rebuild is running; retry when it finishes{listed}"
    return SchemaBusyError(message)


def database_revision(connection: sa.Connection) -> Revision:
    """How the database's revision compares with those that this code has."""
    driver_connection: Connection = connection.connection.driver_connection
    with driver_connection.cursor() as cursor:
        return inspect_revision(cursor)


def migrate(
    url: str, to: str = "head", *, wait_s: int = LOCK_TIMEOUT_S
) -> tuple[str | None, str | None]:
    """Upgrade or downgrade to a revision (`head`, `base`, an id, `-1`).

    Returns the revisions before and after. CuaProjectError while an older projector is running or
    when a script fails; MismatchError of a newer, a development version's or a damaged database;
    NotFoundError for an unknown revision; UnreachableError.
    """
    with connected(url, "migrate") as connection, connection, connection.cursor() as cursor:
        revision = inspect_revision(cursor)
        revision.refuse()
        is_newest = revision.age is Age.CURRENT and to == "head"
        if is_newest and not _has_search_path(cursor):
            cursor.execute(SET_SEARCH_PATH)
    if is_newest:
        # Nothing to migrate, so no session to wait for.
        _refresh_repeatable(url)
        return revision.newest, revision.newest
    with schema_connection(url, wait_s) as connection:
        revision = database_revision(connection)
        revision.refuse()
        before = next(iter(revision.found), None)
        if revision.age is Age.CURRENT and to == "head":
            _set_search_path(connection)
            write_repeatable(connection)
            return before, before
        _refuse_during_older_projection(connection)
        config = _config(connection)
        script = ScriptDirectory.from_config(config)
        try:
            if to == "base" or to.startswith("-") or _is_below(script, to, before):
                command.downgrade(config, to)
            else:
                command.upgrade(config, to)
        except (sa.exc.DBAPIError, psycopg2.Error) as error:
            if lost := lost_session(error):
                raise UnreachableError(lost) from error
            reason = forbidden(error) or str(getattr(error, "orig", error)).strip()
            message = f"the migration to {to} failed and was rolled back: {reason}"
            raise CuaProjectError(message) from error
        except CommandError as error:
            raise _unknown_revision(script, to, error) from None
        after = next(iter(database_revision(connection).found), None)
        _set_search_path(connection)
        return before, after


def _refresh_repeatable(url: str) -> None:
    """Write comments and views that differ, unless a migration or rebuild is running: it does."""
    with schema_engine(url).begin() as connection:
        connection.execute(sa.text("SET LOCAL search_path TO public"))
        if not is_stale(connection):
            return
        attempt = sa.text("SELECT pg_try_advisory_xact_lock(:key)")
        if connection.scalar(attempt, {"key": SCHEMA_LOCK}):
            write_repeatable(connection)


def _unknown_revision(script: ScriptDirectory, to: str, error: CommandError) -> NotFoundError:
    known = ", ".join(sorted(revision.revision for revision in script.walk_revisions()))
    return NotFoundError(f"cannot migrate to {to!r}: {error}; the revisions are {known}")


def _is_below(script: ScriptDirectory, to: str, current: str | None) -> bool:
    if current is None or to in {"head", "heads", current} or to.startswith("+"):
        return False
    return to in {revision.revision for revision in script.iterate_revisions(current, "base")}


def _refuse_during_older_projection(connection: sa.Connection) -> None:
    driver_connection: Connection = connection.connection.driver_connection
    with driver_connection.cursor() as cursor:
        refuse_during_older_projection(cursor, "migrate")


def refuse_during_older_projection(cursor: Cursor, verb: str) -> None:
    """CuaProjectError while an older projector works: it would go on writing its rows."""
    if find_problems(cursor, [OPS_SCHEMA]):
        return
    holder = current_holder(cursor)
    if holder is not None and holder[1] < PROJECTION_VERSION:
        message = (
            f"an older projector is running ({holder[0]}, projection version {holder[1]}); stop it,"
            f" then {verb} and start the new one"
        )
        raise CuaProjectError(message)


SET_SEARCH_PATH = (
    "DO $$ BEGIN EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET search_path = "
    f"{SCHEMA}, public', current_database()); END $$"
)


def _set_search_path(connection: sa.Connection) -> None:
    """Let plain psql find the tables, for the role that migrates; other roles set their own."""
    connection.execute(sa.text(SET_SEARCH_PATH))


def _has_search_path(cursor: Cursor) -> bool:
    """Whether plain psql finds the tables."""
    cursor.execute(
        "SELECT EXISTS (SELECT FROM pg_db_role_setting JOIN pg_database ON pg_database.oid ="
        " setdatabase JOIN pg_roles ON pg_roles.oid = setrole WHERE datname = current_database()"
        " AND rolname = current_user AND %s = ANY(setconfig))",
        (f"search_path={SCHEMA}, public",),
    )
    row = cursor.fetchone()
    return row is not None and bool(row[0])


def schema_differences(url: str) -> list[str]:
    """What differs from the tables' definition and from our views, in words; empty: nothing.

    Ignores what users added, unless it lets no row be inserted, and comments of other words, which
    `migrate` writes. Reads without a lock. UnreachableError.
    """
    try:
        with schema_engine(url).begin() as connection:
            driver_connection: Connection = connection.connection.driver_connection
            with driver_connection.cursor() as cursor:
                problems = find_problems(cursor)
            return [*(problem.text for problem in problems), *missing_views(connection)]
    except OperationalError as error:
        raise unreachable(url, error) from None
