"""Grants: everybody may do the same with the new tables as with those they replace, and no more.

The schema `cua` stays, and with it its own grants and default privileges. A table that replaces
none, because the old one was dropped, gets the schema's default privileges.
"""

from consumers.database.connection import Cursor
from consumers.database.dependants import TABLE_NAMES, TABLES, quoted
from consumers.rebuild.plan import Plan
from consumers.tables import SCHEMA

OWNER = ""
"""Stands for the table's owner, who may be another one before and after."""

_Grant = tuple[str, str | None, str, str, bool]
"""Table, column, grantee, privilege, grant option."""


def plan_permissions(cursor: Cursor, plan: Plan) -> None:
    """Add the grants that the target's tables lack, and take those that only they have."""
    wanted, present = _read(cursor, SCHEMA), _read(cursor, plan.target)
    tables, live = _names(cursor, plan.target), _names(cursor, SCHEMA)
    owner = _owner(cursor, plan.target)
    wanted |= {
        (table, None, *default) for table in tables - live for default in _defaults(cursor, owner)
    }
    for grant in sorted(present - wanted, key=str):
        if grant[0] not in live:
            continue
        # Our own rights go last: the tables are still being filled.
        on = SCHEMA if grant[2] == OWNER else plan.target
        statements = plan.after if grant[2] == OWNER else plan.before
        statements.append(_statement("REVOKE", grant, on, owner))
    for grant in sorted(wanted - present, key=str):
        if grant[0] in tables:
            plan.before.append(_statement("GRANT", grant, plan.target, owner))


def _statement(verb: str, grant: _Grant, schema: str, owner: str) -> str:
    table, column, grantee, privilege, is_grantable = grant
    what = f"{privilege} ({quoted(column)})" if column else privilege
    option = " WITH GRANT OPTION" if is_grantable and verb == "GRANT" else ""
    towards = "TO" if verb == "GRANT" else "FROM"
    cascade = "" if verb == "GRANT" else " CASCADE"
    who = grantee if grantee != OWNER else owner
    return f"{verb} {what} ON TABLE {quoted(schema, table)} {towards} {who}{option}{cascade}"


def _read(cursor: Cursor, schema: str) -> frozenset[_Grant]:
    """Every grant on our tables of a schema and on their columns; regrole quotes names."""
    grantee = (
        "CASE WHEN acl.grantee = 0 THEN 'PUBLIC' WHEN acl.grantee = tables.relowner THEN %(owner)s"
        " ELSE acl.grantee::regrole::text END, acl.privilege_type, acl.is_grantable"
    )
    cursor.execute(
        f"WITH {TABLES} SELECT name, NULL, {grantee} FROM tables JOIN pg_class ON pg_class.oid ="
        " tables.oid, aclexplode(coalesce(relacl, acldefault('r', pg_class.relowner))) AS acl UNION"
        f" ALL SELECT name, attname::text, {grantee} FROM tables JOIN pg_attribute ON attrelid ="
        " tables.oid, aclexplode(attacl) AS acl WHERE NOT attisdropped",
        {"schema": schema, "names": list(TABLE_NAMES), "owner": OWNER},
    )
    return frozenset(tuple(row) for row in cursor.fetchall())


def _names(cursor: Cursor, schema: str) -> set[str]:
    """Which of our tables a schema has."""
    names = {"schema": schema, "names": list(TABLE_NAMES)}
    cursor.execute(f"WITH {TABLES} SELECT name FROM tables", names)
    return {str(name) for (name,) in cursor.fetchall()}


def _defaults(cursor: Cursor, owner: str) -> list[tuple[str, str, bool]]:
    """What a table of this owner gets that is created in the live schema: grantee and privilege."""
    cursor.execute(
        "SELECT CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE acl.grantee::regrole::text END,"
        " acl.privilege_type, acl.is_grantable FROM pg_default_acl, aclexplode(defaclacl) AS acl"
        " WHERE defaclobjtype = 'r' AND defaclrole::regrole::text = %s AND defaclnamespace ="
        " to_regnamespace(%s)",
        (owner, SCHEMA),
    )
    return [(grantee, privilege, option) for grantee, privilege, option in cursor.fetchall()]


def _owner(cursor: Cursor, schema: str) -> str:
    cursor.execute(
        f"WITH {TABLES} SELECT relowner::regrole::text FROM tables LIMIT 1",
        {"schema": schema, "names": list(TABLE_NAMES)},
    )
    row = cursor.fetchone()
    return "CURRENT_USER" if row is None else str(row[0])
