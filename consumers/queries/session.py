"""Sessions for programs and notebooks.

The only module with an engine per process, because `get_session()` takes no argument.
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
    """Connect this process to the tables, before `get_session`; a second call reconnects.

    Without `url`: the installation's database (DATABASE_URL, POSTGRES_*, or the embedded one).
    `migrate` None migrates an embedded or an empty database and only checks any other; True
    migrates any; False only checks. UnreachableError; CuaProjectError when the database is at
    another revision, with the command that migrates it; MismatchError when it is newer or damaged.
    """
    try:
        return open_database(url, migrate=migrate)
    except UnreachableError:
        raise
    except CuaProjectError as error:
        if not str(error).endswith("run `cua-project migrate`"):
            raise
        message = f"{error} (or call init_database with migrate=True)"
        raise CuaProjectError(message) from None


def open_database(url: str | None = None, *, migrate: bool | None = None) -> Engine:
    """As `init_database`; its errors advise commands only."""
    from consumers.database.readiness import make_ready

    global _sessions  # noqa: PLW0603  # see the module's docstring
    embedded = url is None and is_embedded(os.environ)
    chosen = sqlalchemy_url(url) if url is not None else resolve_database(os.environ)
    make_ready(chosen, embedded=embedded, migrate=migrate)
    engine = database_engine(chosen)
    if _sessions is not None:
        _sessions.kw["bind"].dispose()
    _sessions = sessionmaker(engine, expire_on_commit=False)
    return engine


def get_session() -> Session:
    """Open a session; the caller closes it. CuaProjectError before `init_database`."""
    if _sessions is None:
        message = "no database is connected; call init_database() first"
        raise CuaProjectError(message)
    return _sessions()
