"""Settings that users gave our tables: owner, storage, comments, row security, column settings.

Read from the live tables and from those that replace them; what differs is set on the latter.
"""

from typing import NamedTuple

from consumers.database.connection import Cursor
from consumers.database.dependants import TABLE_NAMES, TABLES, quoted
from consumers.rebuild.plan import Plan
from consumers.tables import SCHEMA

STORAGE = {"p": "PLAIN", "e": "EXTERNAL", "m": "MAIN", "x": "EXTENDED"}
COMPRESSION = {"": "default", "p": "pglz", "l": "lz4"}


class _Table(NamedTuple):
    owner: str
    options: list[str]
    tablespace: str | None
    persistence: str
    identity: str
    identity_index: str | None
    clustered: str | None
    has_row_security: bool
    forces_row_security: bool
    comment: str | None


class _Column(NamedTuple):
    type: str
    target: int
    storage: str
    compression: str
    options: list[str]
    default: str | None
    comment: str | None


def plan_settings(cursor: Cursor, plan: Plan) -> None:
    """Add every setting of the live tables that the target's lack."""
    live, new = _read_tables(cursor, SCHEMA), _read_tables(cursor, plan.target)
    for name, wanted in live.items():
        if name in new and new[name] != wanted:
            _plan_table(plan, name, wanted, new[name])
    columns, others = _read_columns(cursor, SCHEMA), _read_columns(cursor, plan.target)
    for (table, name), column in columns.items():
        other = others.get((table, name))
        if other is not None and other != column and other.type == column.type:
            _plan_column(plan, table, name, column, other)
    _plan_part_comments(cursor, plan)


def _plan_table(plan: Plan, name: str, wanted: _Table, present: _Table) -> None:
    target, live = quoted(plan.target, name), quoted(SCHEMA, name)
    alter = f"ALTER TABLE {target} "
    plan.before += [alter + change for change in option_changes(wanted.options, present.options)]
    if wanted.tablespace != present.tablespace:
        plan.before.append(f"{alter}SET TABLESPACE {quoted(wanted.tablespace or 'pg_default')}")
    if wanted.persistence != present.persistence:
        plan.before.append(f"{alter}SET {'UNLOGGED' if wanted.persistence == 'u' else 'LOGGED'}")
    if (wanted.identity, wanted.identity_index) != (present.identity, present.identity_index):
        kind = {"d": "DEFAULT", "n": "NOTHING", "f": "FULL"}.get(wanted.identity)
        which = kind or f"USING INDEX {quoted(wanted.identity_index or '')}"
        plan.before.append(f"{alter}REPLICA IDENTITY {which}")
    if wanted.clustered != present.clustered:
        plan.before.append(
            f"{alter}SET WITHOUT CLUSTER"
            if wanted.clustered is None
            else f"{alter}CLUSTER ON {quoted(wanted.clustered)}"
        )
    if wanted.comment != present.comment:
        plan.before.append(f"COMMENT ON TABLE {target} IS {wanted.comment or 'NULL'}")
    # These would keep us from filling the tables.
    if wanted.has_row_security != present.has_row_security:
        verb = "ENABLE" if wanted.has_row_security else "DISABLE"
        plan.after.append(f"ALTER TABLE {live} {verb} ROW LEVEL SECURITY")
    if wanted.forces_row_security != present.forces_row_security:
        verb = "FORCE" if wanted.forces_row_security else "NO FORCE"
        plan.after.append(f"ALTER TABLE {live} {verb} ROW LEVEL SECURITY")
    if wanted.owner != present.owner:
        plan.after.append(f"ALTER TABLE {live} OWNER TO {wanted.owner}")


def option_changes(wanted: list[str], present: list[str]) -> list[str]:
    """What follows ALTER TABLE, INDEX or COLUMN to get from the present options to the wanted."""
    gone = {item.partition("=")[0] for item in present} - {
        item.partition("=")[0] for item in wanted
    }
    changed = sorted(set(wanted) - set(present))
    return [
        *([f"SET ({', '.join(changed)})"] if changed else []),
        *([f"RESET ({', '.join(sorted(gone))})"] if gone else []),
    ]


def _plan_column(plan: Plan, table: str, name: str, wanted: _Column, present: _Column) -> None:
    target, column = quoted(plan.target, table), quoted(name)
    alter = f"ALTER TABLE {target} ALTER COLUMN {column} "
    if wanted.target != present.target:
        plan.before.append(f"{alter}SET STATISTICS {wanted.target}")
    if wanted.storage != present.storage:
        plan.before.append(f"{alter}SET STORAGE {STORAGE[wanted.storage]}")
    if wanted.compression != present.compression:
        plan.before.append(f"{alter}SET COMPRESSION {COMPRESSION[wanted.compression]}")
    plan.before += [alter + change for change in option_changes(wanted.options, present.options)]
    if wanted.default != present.default:
        plan.before.append(
            f"{alter}DROP DEFAULT"
            if wanted.default is None
            else f"{alter}SET DEFAULT {wanted.default}"
        )
    if wanted.comment != present.comment:
        plan.before.append(f"COMMENT ON COLUMN {target}.{column} IS {wanted.comment or 'NULL'}")


def _plan_part_comments(cursor: Cursor, plan: Plan) -> None:
    """Comments on our constraints and indexes."""
    found = []
    for schema in (SCHEMA, plan.target):
        cursor.execute(
            f"WITH {TABLES} SELECT 'CONSTRAINT', name, conname,"
            " quote_literal(obj_description(pg_constraint.oid, 'pg_constraint')) FROM tables JOIN"
            " pg_constraint ON conrelid = tables.oid UNION ALL SELECT 'INDEX', name, relname,"
            " quote_literal(obj_description(pg_class.oid, 'pg_class')) FROM tables JOIN pg_index ON"
            " indrelid = tables.oid JOIN pg_class ON pg_class.oid = indexrelid",
            {"schema": schema, "names": list(TABLE_NAMES)},
        )
        found.append({row[:3]: row[3] for row in cursor.fetchall()})
    live, new = found
    for key, comment in live.items():
        if key in new and comment != new[key]:
            kind, table, name = key
            what = (
                f"{quoted(name)} ON {quoted(plan.target, table)}"
                if kind == "CONSTRAINT"
                else quoted(plan.target, name)
            )
            plan.before.append(f"COMMENT ON {kind} {what} IS {comment or 'NULL'}")


def _read_tables(cursor: Cursor, schema: str) -> dict[str, _Table]:
    cursor.execute(
        f"WITH {TABLES} SELECT name, live.relowner::regrole::text, coalesce(live.reloptions,"
        " ARRAY[]::text[]) || ARRAY(SELECT 'toast.' || option FROM unnest(toast.reloptions) AS"
        " option), spcname, live.relpersistence::text, live.relreplident::text, (SELECT"
        " relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indrelid ="
        " live.oid AND indisreplident), (SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid"
        " = indexrelid WHERE indrelid = live.oid AND indisclustered), live.relrowsecurity,"
        " live.relforcerowsecurity,"
        " quote_literal(obj_description(live.oid, 'pg_class')) FROM tables JOIN pg_class AS live ON"
        " live.oid = tables.oid LEFT JOIN pg_class AS toast ON toast.oid = live.reltoastrelid LEFT"
        " JOIN pg_tablespace ON pg_tablespace.oid = live.reltablespace",
        {"schema": schema, "names": list(TABLE_NAMES)},
    )
    return {row[0]: _Table(*row[1:]) for row in cursor.fetchall()}


def _read_columns(cursor: Cursor, schema: str) -> dict[tuple[str, str], _Column]:
    cursor.execute(
        f"WITH {TABLES} SELECT name, attname, format_type(atttypid, atttypmod),"
        " coalesce(attstattarget, -1), attstorage::text, attcompression::text, coalesce(attoptions,"
        " ARRAY[]::text[]), pg_get_expr(adbin, adrelid), quote_literal(col_description(tables.oid,"
        " attnum)) FROM tables JOIN pg_attribute ON attrelid = tables.oid LEFT JOIN pg_attrdef ON"
        " adrelid = tables.oid AND adnum = attnum WHERE attnum > 0 AND NOT attisdropped",
        {"schema": schema, "names": list(TABLE_NAMES)},
    )
    return {(row[0], row[1]): _Column(*row[2:]) for row in cursor.fetchall()}
