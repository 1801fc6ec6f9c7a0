"""Sessions over the tables; `database_dao` has the queries."""

from typing import Any

from sqlalchemy.orm import Session

from consumers.queries import get_session
from consumers.queries import init_database as _init_database

__all__ = ["get_session", "get_session_direct", "init_database"]


def init_database(
    db_url: str | None = None,
    echo: bool = False,  # noqa: FBT001, FBT002  # the recipe's signature
    **more: Any,  # noqa: ANN401  # of our own function
) -> None:
    """Connect to the tables. As `consumers.queries.init_database`; `echo` logs every statement."""
    engine = _init_database(db_url, **more)
    engine.echo = echo


def get_session_direct() -> Session:
    """As `get_session`; the caller closes it."""
    return get_session()
