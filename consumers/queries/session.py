"""Sessions for programs and notebooks.

The one place that keeps an engine for the whole process, because `get_session()` takes none.
"""

import os

from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

from consumers.database.location import (
    database_engine,
    is_embedded,
    resolve_database,
    sqlalchemy_url,
)
from consumers.errors import CuaProjectError, UnreachableError

_sessions: sessionmaker[Session] | None = None


def init_database(url: str | None = None, *, migrate: bool | None = None) -> Engine:
    """Connect this process to the tables; call it once before `get_session`.

    Called again, it connects to the other database.

    Without `url` the installation's database is used: DATABASE_URL, POSTGRES_*, or the embedded
    one. With `migrate` None an embedded or an empty database is brought to the newest revision and
    any other is only checked; True migrates any, False none. UnreachableError; CuaProjectError when
    the database is at another revision, which says how to migrate.
    """
    from consumers.database.readiness import make_ready

    global _sessions  # noqa: PLW0603  # see the module's docstring
    embedded = url is None and is_embedded(os.environ)
    chosen = sqlalchemy_url(url) if url is not None else resolve_database(os.environ)
    try:
        make_ready(chosen, embedded=embedded, migrate=migrate)
    except UnreachableError:
        raise
    except CuaProjectError as error:
        message = f"{error} (or call init_database with migrate=True)"
        raise CuaProjectError(message) from None
    engine = database_engine(chosen)
    if _sessions is not None:
        _sessions.kw["bind"].dispose()
    _sessions = sessionmaker(engine, expire_on_commit=False)
    return engine


def get_session() -> Session:
    """Open a session, used by `with` or plain and closed by hand.

    CuaProjectError before `init_database`.
    """
    if _sessions is None:
        message = "expected init_database() to be called first, found no database connected"
        raise CuaProjectError(message)
    return _sessions()
