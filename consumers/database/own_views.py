"""Whether what has the name of one of our views is that view, or something of a user's.

Ours only shows the rows of a function of ours, in every version so far; a user's view of the same
name is theirs, and neither replaced nor dropped.
"""

import re

from consumers.database.connection import Cursor
from consumers.errors import CuaProjectError
from consumers.tables import SCHEMA
from consumers.tables.views import VIEW_NAMES

_KINDS = {"v": "view", "r": "table", "p": "table", "m": "materialized view", "f": "foreign table"}


def users_views(cursor: Cursor, schema: str = SCHEMA) -> list[str]:
    """What has a name of our views in a schema and is not ours: `view cua.rollout_summary`."""
    cursor.execute(
        "SELECT relname, relkind::text, CASE relkind WHEN 'v' THEN pg_get_viewdef(pg_class.oid) END"
        " FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relname = ANY(%s) ORDER BY 1",
        (f'"{schema}"', list(VIEW_NAMES)),
    )
    return [
        f"{_KINDS.get(kind, 'relation')} {schema}.{name}"
        for name, kind, definition in cursor.fetchall()
        if definition is None or not _shows_only(definition, f"{name}_rows")
    ]


def _shows_only(definition: str, function: str) -> bool:
    """Whether a view is `SELECT column, ... FROM function()`."""
    pattern = rf'\s*SELECT [^()]+ FROM (\S+\.)?"?{function}"?\(\) \S+\([^()]*\);?\s*'
    return re.fullmatch(pattern, definition) is not None


def refuse_users_views(cursor: Cursor, schema: str = SCHEMA) -> None:
    """CuaProjectError, naming it, when something of a user's has the name of one of our views."""
    if found := users_views(cursor, schema):
        kind, _, name = found[0].rpartition(" ")
        what = kind.upper()
        own = name.rpartition(".")[2]
        message = (
            f"{', '.join(found)} is not ours, and a view of cua-train has that name; nothing was"
            f" changed: drop or rename it (ALTER {what} {name} RENAME TO my_{own}), then run"
            " `cua-project migrate`"
        )
        raise CuaProjectError(message)
