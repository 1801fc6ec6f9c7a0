"""Migrates a database to a revision of the tables, and compares it with their definition.

One advisory lock makes migrations and rebuilds mutually exclusive. The scripts are in the
checkout's `alembic` folder or, when installed, in `consumers/migrations`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from psycopg2.errors import LockNotAvailable
from sqlalchemy.exc import OperationalError

from consumers.database.connection import Connection, schema_engine
from consumers.database.lease import current_holder
from consumers.database.location import unreachable
from consumers.database.repeatable import missing_views, write_repeatable
from consumers.errors import CuaProjectError, NotFoundError
from consumers.tables import OPS_SCHEMA, PREVIOUS_SCHEMA, PROJECTION_VERSION, SCHEMA
from consumers.tables.comments import commented_metadata

SCHEMA_LOCK = 0x6375612D74726169
"""Advisory lock for changes of the schema; the bytes spell "cua-trai"."""
LOCK_TIMEOUT_S = 15
"""How long to wait for another migration or rebuild."""


def _scripts() -> Path:
    package = Path(__file__).parents[1]
    places = (package / "migrations", package.parent / "alembic")
    for place in places:
        if (place / "env.py").is_file():
            return place
    message = f"no migrations in {' or '.join(str(place) for place in places)}; reinstall cua-train"
    raise CuaProjectError(message)


def _config(connection: sa.Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_scripts()).replace("%", "%%"))
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
        message = "another migration or rebuild is running; retry when it finishes"
        raise CuaProjectError(message) from None


def current_revision(connection: sa.Connection) -> str | None:
    """The database's revision; None before the first migration."""
    return MigrationContext.configure(
        connection, opts={"version_table_schema": OPS_SCHEMA}
    ).get_current_revision()


def newest_revision() -> str:
    """The newest revision that this code has."""
    config = Config()
    config.set_main_option("script_location", str(_scripts()).replace("%", "%%"))
    head = ScriptDirectory.from_config(config).get_current_head()
    assert head is not None  # noqa: S101  # there is a first migration
    return head


def migrate(
    url: str, to: str = "head", *, wait_s: int = LOCK_TIMEOUT_S
) -> tuple[str | None, str | None]:
    """Upgrade or downgrade to a revision (`head`, `base`, an id, `-1`).

    Returns the revisions before and after. CuaProjectError while an older projector is running or
    when a script fails; NotFoundError for an unknown revision; UnreachableError.
    """
    with schema_connection(url, wait_s) as connection:
        before = current_revision(connection)
        if before == newest_revision() and to == "head":
            _set_search_path(connection)
            write_repeatable(connection)
            return before, before
        _refuse_during_older_projection(connection)
        config = _config(connection)
        script = ScriptDirectory.from_config(config)
        try:
            down = to == "base" or to.startswith("-") or _is_below(script, to, before)
            (command.downgrade if down else command.upgrade)(config, to)
        except sa.exc.DBAPIError as error:
            message = f"the migration to {to} failed and was rolled back: {error.orig}"
            raise CuaProjectError(message) from error
        except CommandError as error:
            raise _unknown_revision(script, to, before, error) from None
        # No migration leads from the tables before the last rebuild to this revision.
        connection.execute(sa.text(f"DROP SCHEMA IF EXISTS {PREVIOUS_SCHEMA} CASCADE"))
        after = current_revision(connection)
        _set_search_path(connection)
        return before, after


def _unknown_revision(
    script: ScriptDirectory, to: str, before: str | None, error: CommandError
) -> CuaProjectError:
    known = sorted(revision.revision for revision in script.walk_revisions())
    if before is not None and before not in known:
        message = (
            f"the database is at revision {before}, which this version of cua-train does not have;"
            " install the newer cua-train that migrated it"
        )
        return CuaProjectError(message)
    message = f"cannot migrate to {to!r}: {error}; the revisions are {', '.join(known)}"
    return NotFoundError(message)


def _is_below(script: ScriptDirectory, to: str, current: str | None) -> bool:
    if current is None or to in {"head", "heads", current} or to.startswith("+"):
        return False
    return to in {revision.revision for revision in script.iterate_revisions(current, "base")}


def _refuse_during_older_projection(connection: sa.Connection) -> None:
    if not connection.scalar(sa.text(f"SELECT to_regclass('{OPS_SCHEMA}.lease')")):
        return
    driver_connection: Connection = connection.connection.driver_connection
    with driver_connection.cursor() as cursor:
        holder = current_holder(cursor)
    if holder is not None and holder[1] < PROJECTION_VERSION:
        message = (
            f"an older projector is running ({holder[0]}, projection version {holder[1]}); stop it,"
            " then migrate and start the new one"
        )
        raise CuaProjectError(message)


def _set_search_path(connection: sa.Connection) -> None:
    """Let plain psql find the tables, for the role that migrates; other roles set their own."""
    connection.execute(
        sa.text(
            "DO $$ BEGIN EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET search_path = "
            f"{SCHEMA}, public', current_database()); END $$"
        )
    )


def schema_differences(url: str) -> list[str]:
    """What a migration would have to change to match the tables' definition; empty: nothing."""
    with schema_connection(url) as connection:
        return differences(connection)


def differences(connection: sa.Connection) -> list[str]:
    """As `schema_differences`, on a connection whose search_path does not start with our schema."""
    connection.dialect.default_schema_name = "public"
    ours = {SCHEMA, OPS_SCHEMA}

    def include_name(name: str | None, type_: str, parents: dict[str, str | None]) -> bool:
        if type_ == "schema":
            return name in ours
        return not (
            type_ == "table"
            and name == "alembic_version"
            and parents.get("schema_name") == OPS_SCHEMA
        )

    context = MigrationContext.configure(
        connection,
        opts={
            "include_schemas": True,
            "include_name": include_name,
            "compare_type": True,
            "compare_server_default": True,
            "version_table_schema": OPS_SCHEMA,
        },
    )
    found = compare_metadata(context, commented_metadata())
    return [*(_describe(difference) for difference in found), *missing_views(connection)]


def _describe(difference: object) -> str:
    if isinstance(difference, list):
        return "; ".join(_describe(part) for part in difference)
    assert isinstance(difference, tuple)  # noqa: S101  # alembic's own form
    kind, *rest = difference
    return f"{kind}: " + " ".join(
        str(getattr(part, "name", part)) for part in rest if part is not None
    )


def ensure_current(url: str) -> None:
    """CuaProjectError unless the database is at this code's revision."""
    engine = schema_engine(url)
    try:
        with engine.connect() as connection:
            revision = current_revision(connection)
    except OperationalError as error:
        raise unreachable(url, error) from None
    if revision != newest_revision():
        found = "has no tables of ours" if revision is None else f"is at revision {revision}"
        message = (
            f"the database {found}, and this version needs revision {newest_revision()}; run"
            " `cua-project migrate`"
        )
        raise CuaProjectError(message)
