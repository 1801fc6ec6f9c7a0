"""A database whose `alembic_version` names an older revision than its tables have.

It was set by hand, or restored alone, and its migrations would make tables that exist. So the first
later revision is taken from which the remaining migrations apply and leave nothing missing.
"""

import logging
from collections.abc import Callable, Iterable

import psycopg2
import sqlalchemy as sa

from consumers.database.connection import Connection
from consumers.database.shape import find_problems
from consumers.tables import OPS_SCHEMA

logger = logging.getLogger(__name__)

IS_THERE = frozenset({"42P06", "42P07", "42701", "42710", "42723"})
"""SQLSTATEs of a schema, table, column, object or function that exists already."""
IS_GONE = frozenset({"42P01", "42703", "42704", "42883", "3F000"})
"""Of one that was dropped or renamed already."""


def is_applied_already(error: Exception) -> bool:
    """Whether a migration failed because its work is done."""
    original = getattr(error, "orig", error)
    return isinstance(original, psycopg2.Error) and original.pgcode in IS_THERE | IS_GONE


def upgrade_from_later(
    connection: sa.Connection,
    recorded: str,
    later: Iterable[str],
    upgrade: Callable[[], None],
) -> bool:
    """Upgrade from the first of the later revisions that fits; False when none does.

    `upgrade` migrates from the revision that is recorded. A revision that does not fit leaves
    nothing behind.
    """
    for revision in later:
        attempt = connection.begin_nested()
        connection.execute(
            sa.text(f"UPDATE {OPS_SCHEMA}.alembic_version SET version_num = :revision"),
            {"revision": revision},
        )
        try:
            upgrade()
        except (sa.exc.DBAPIError, psycopg2.Error) as error:
            attempt.rollback()
            if is_applied_already(error):
                continue
            raise
        driver_connection: Connection = connection.connection.driver_connection
        with driver_connection.cursor() as cursor:
            fits = not find_problems(cursor)
        if fits:
            attempt.commit()
            logger.warning(
                "%s.alembic_version named revision %s, but the tables are those of revision %s;"
                " migrated from there",
                *(OPS_SCHEMA, recorded, revision),
            )
            return True
        attempt.rollback()
    return False
