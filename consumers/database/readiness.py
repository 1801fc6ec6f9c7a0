"""Brings a database to the tables of this code where nobody can mind, and only checks it elsewhere."""

from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from consumers.database.location import database_engine, unreachable
from consumers.database.migrate import ensure_current
from consumers.database.migrate import migrate as migrate_database


def make_ready(url: str, *, embedded: bool, migrate: bool | None = None) -> None:
    """Return once the database has this code's tables.

    `migrate` None: an embedded or an empty database is migrated, any other is only checked; True:
    any is migrated; False: none. UnreachableError; CuaProjectError when the database is at another
    revision, which says how to migrate.
    """
    if migrate or (migrate is None and (embedded or is_empty(url))):
        migrate_database(url)
    else:
        ensure_current(url)


def is_empty(url: str) -> bool:
    """Whether nobody has made a table in this database. UnreachableError."""
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
