"""Ensures that a database has this version's tables: migrates if it may, otherwise only checks."""

from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from consumers.database.location import database_engine, unreachable
from consumers.database.migrate import ensure_current
from consumers.database.migrate import migrate as migrate_database


def make_ready(url: str, *, embedded: bool, migrate: bool | None = None) -> None:
    """Return once the database has this version's tables.

    `migrate` None: migrate an embedded or an empty database and only check any other; True:
    migrate any; False: only check. UnreachableError; CuaProjectError when the database is at
    another revision, with the command that migrates it.
    """
    if migrate or (migrate is None and (embedded or is_empty(url))):
        migrate_database(url)
    else:
        ensure_current(url)


def is_empty(url: str) -> bool:
    """Whether the database has no table at all. UnreachableError."""
    query = (
        "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog',"
        " 'information_schema')"
    )
    engine = database_engine(url)
    try:
        with engine.connect() as connection:
            return not connection.scalar(text(query))
    except OperationalError as error:
        raise unreachable(url, error) from None
    finally:
        engine.dispose()
