"""Which views and functions of a schema are ours, and which a user gave a name of ours.

A view of ours shows every column of a function of ours and nothing else, in every version so far; a
function of ours has a comment that only we write. What else has such a name is the user's, and
neither replaced nor dropped.
"""

import re
from typing import NamedTuple

from consumers.database.connection import Cursor
from consumers.errors import CuaProjectError
from consumers.tables import SCHEMA
from consumers.tables.views import FUNCTION_SIGNATURES, VIEW_NAMES, functions

SIGNATURE = "proname || '(' || oidvectortypes(proargtypes) || ')'"
"""SQL: a function's name and the types of its arguments."""
_KINDS = {"v": "view", "r": "table", "p": "table", "m": "materialized view", "f": "foreign table"}
_NAME = r'(?:\w+|"(?:[^"]|"")+")'
_VIEW = re.compile(
    rf"\s*SELECT (?P<shown>[^()]+) FROM (?:{_NAME}\.)?(?P<function>{_NAME})\(\)"
    rf" (?P<alias>{_NAME})\((?P<columns>[^()]*)\);?\s*"
)
"""As pg_get_viewdef writes a view of ours."""


class _Named(NamedTuple):
    """Something in a schema that has a name of ours."""

    kind: str
    """`view`, `function`, `table` ..."""
    name: str
    """Of a function with the types of its arguments."""
    is_ours: bool


def own_views(cursor: Cursor, schema: str) -> list[str]:
    """Names of the views of a schema that are ours."""
    return [found.name for found in _views(cursor, schema) if found.is_ours]


def own_functions(cursor: Cursor, schema: str) -> list[str]:
    """Signatures of the functions of a schema that are ours."""
    return [found.name for found in _functions(cursor, schema) if found.is_ours]


def users_own(cursor: Cursor, schema: str = SCHEMA) -> list[str]:
    """What has a name of ours in a schema and is not ours: `view cua.rollout_summary`."""
    found = [*_views(cursor, schema), *_functions(cursor, schema)]
    return [f"{each.kind} {schema}.{each.name}" for each in found if not each.is_ours]


def refuse_users_own(cursor: Cursor, schema: str = SCHEMA) -> None:
    """CuaProjectError, naming it, when something of a user's has a name of ours."""
    if found := users_own(cursor, schema):
        kind, _, name = found[0].partition(f" {schema}.")
        message = (
            f"{', '.join(found)} is not ours, and a {'function' if kind == 'function' else 'view'}"
            f" of cua-train has that name; nothing was changed: drop or rename it (ALTER"
            f" {kind.upper()} {schema}.{name} RENAME TO my_{name.partition('(')[0]}), then run"
            " `cua-project migrate`"
        )
        raise CuaProjectError(message)


def _views(cursor: Cursor, schema: str) -> list[_Named]:
    cursor.execute(
        "SELECT relname, relkind::text, CASE relkind WHEN 'v' THEN pg_get_viewdef(pg_class.oid) END"
        " FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relname = ANY(%s) ORDER BY 1",
        (f'"{schema}"', list(VIEW_NAMES)),
    )
    return [
        _Named(
            _KINDS.get(kind, "relation"),
            name,
            definition is not None and _shows_all_of(definition, f"{name}_rows"),
        )
        for name, kind, definition in cursor.fetchall()
    ]


def _shows_all_of(definition: str, function: str) -> bool:
    """Whether a view is `SELECT every column FROM function()`."""
    found = _VIEW.fullmatch(definition)
    if found is None or found["function"].strip('"') != function:
        return False
    prefix = found["alias"] + "."
    shown = [each.strip().removeprefix(prefix) for each in found["shown"].split(",")]
    return shown == [each.strip() for each in found["columns"].split(",")]


def _functions(cursor: Cursor, schema: str) -> list[_Named]:
    # One that a view of ours shows is ours, whatever else uses it.
    shown = {f"{name}_rows()" for name in own_views(cursor, schema)}
    comments = {each.signature: each.comment for each in functions(schema)}
    bodies = {each.signature: each.body for each in functions(schema)}
    cursor.execute(
        f"SELECT {SIGNATURE}, obj_description(oid, 'pg_proc'), prosrc FROM pg_proc WHERE"
        f" pronamespace = to_regnamespace(%s) AND {SIGNATURE} = ANY(%s) ORDER BY 1",
        (f'"{schema}"', list(FUNCTION_SIGNATURES)),
    )
    return [
        _Named(
            "function",
            name,
            name in shown or comment == comments[name] or body == bodies[name],
        )
        for name, comment, body in cursor.fetchall()
    ]
