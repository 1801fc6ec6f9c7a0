"""Settings that users gave indexes, ours and their own: options, tablespace, statistics targets.

A definition of an index or a constraint has not all of them.
"""

from typing import NamedTuple

from consumers.database.connection import Cursor
from consumers.database.dependants import TABLE_NAMES, TABLES, quoted
from consumers.rebuild.plan import Plan
from consumers.rebuild.settings import option_changes
from consumers.tables import SCHEMA


class _Index(NamedTuple):
    options: list[str]
    tablespace: str | None
    targets: dict[str, int]
    """Number of a column, from 1 -> target of its statistics; without the default ones."""


def plan_index_settings(cursor: Cursor, plan: Plan) -> None:
    """Add what the target's indexes lack of the live ones' settings.

    An index that the plan only makes is seen by the next plan.
    """
    live, new = _read(cursor, SCHEMA), _read(cursor, plan.target)
    for name in sorted(live.keys() & new.keys()):
        wanted, present = live[name], new[name]
        alter = f"ALTER INDEX {quoted(plan.target, name)} "
        plan.before += [
            alter + change for change in option_changes(wanted.options, present.options)
        ]
        if wanted.tablespace != present.tablespace:
            plan.before.append(f"{alter}SET TABLESPACE {quoted(wanted.tablespace or 'pg_default')}")
        plan.before += [
            f"{alter}ALTER COLUMN {column} SET STATISTICS {wanted.targets.get(column, -1)}"
            for column in sorted(wanted.targets.keys() | present.targets.keys())
            if wanted.targets.get(column) != present.targets.get(column)
        ]


def _read(cursor: Cursor, schema: str) -> dict[str, _Index]:
    cursor.execute(
        f"WITH {TABLES} SELECT relname, coalesce(reloptions, ARRAY[]::text[]), spcname,"
        " coalesce((SELECT json_object_agg(attnum, attstattarget) FROM pg_attribute WHERE attrelid"
        " = pg_class.oid AND attstattarget >= 0), '{}') FROM tables JOIN pg_index ON indrelid ="
        " tables.oid JOIN pg_class ON pg_class.oid = indexrelid LEFT JOIN pg_tablespace ON"
        " pg_tablespace.oid = reltablespace",
        {"schema": schema, "names": list(TABLE_NAMES)},
    )
    return {row[0]: _Index(*row[1:]) for row in cursor.fetchall()}
