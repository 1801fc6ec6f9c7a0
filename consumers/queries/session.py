"""Sessions for programs and notebooks. The one place that keeps an engine for the whole process, because `get_session()` takes none."""

import os

from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

from consumers.database import database_engine, is_embedded, resolve_database, sqlalchemy_url, unreachable
from consumers.errors import CuaProjectError

_sessions: sessionmaker[Session] | None = None


def init_database(url: str | None = None, *, migrate: bool | None = None) -> Engine:
    """Connect this process to the tables; call it once before `get_session`. Called again, it connects to the other database.

    Without `url` the installation's database is used: DATABASE_URL, POSTGRES_*, or the embedded one. With `migrate` None an embedded
    or an empty database is brought to the newest revision and any other is only checked; True migrates any, False none.
    UnreachableError; CuaProjectError when the database is at another revision, which says how to migrate.
    """
    from consumers.migrate import ensure_current
    from consumers.migrate import migrate as migrate_database

    global _sessions  # noqa: PLW0603  # see the module's docstring
    embedded = url is None and is_embedded(os.environ)
    chosen = sqlalchemy_url(url) if url is not None else resolve_database(os.environ)
    engine = database_engine(chosen)
    try:
        if migrate or (migrate is None and (embedded or _is_empty(engine))):
            migrate_database(chosen)
        else:
            ensure_current(chosen)
    except OperationalError as error:
        engine.dispose()
        raise unreachable(chosen, error) from None
    except CuaProjectError as error:
        engine.dispose()
        if migrate is None and error.exit_code == CuaProjectError.exit_code:
            message = f"{error} (or call init_database with migrate=True)"
            raise CuaProjectError(message) from None
        raise
    if _sessions is not None:
        _sessions.kw["bind"].dispose()
    _sessions = sessionmaker(engine, expire_on_commit=False)
    return engine


def get_session() -> Session:
    """Open a session, used by `with` or plain and closed by hand. CuaProjectError before `init_database`."""
    if _sessions is None:
        message = "expected init_database() to be called first, found no database connected"
        raise CuaProjectError(message)
    return _sessions()


def _is_empty(engine: Engine) -> bool:
    """Whether nobody has made a table here."""
    query = "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
    with engine.connect() as connection:
        return not connection.scalar(text(query))
