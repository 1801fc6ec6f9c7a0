"""Grants: readers may do the same with the rebuilt tables as with those they replace."""

from psycopg2 import sql

from consumers.database.connection import Cursor
from consumers.tables import ROW_TABLES, STATE_TABLES
from consumers.tables.views import VIEW_NAMES

TABLE_NAMES = tuple(str(table.__tablename__) for table in (*ROW_TABLES, *STATE_TABLES))
"""The tables of a projected schema."""


def copy_permissions(cursor: Cursor, source: str, target: str) -> None:
    """Copy grants on a schema, its tables and their columns, and its default privileges."""
    cursor.execute(
        "SELECT 'SCHEMA', NULL, NULL, acl.grantee::regrole::text, acl.grantee, acl.privilege_type,"
        " acl.is_grantable FROM pg_namespace, aclexplode(nspacl) AS acl WHERE nspname = %(schema)s"
        " UNION ALL SELECT 'TABLE', relname, NULL, acl.grantee::regrole::text, acl.grantee,"
        " acl.privilege_type, acl.is_grantable FROM pg_class, aclexplode(relacl) AS acl WHERE"
        " relnamespace = to_regnamespace(%(schema)s) AND relkind IN ('r', 'v') UNION ALL SELECT"
        " 'COLUMN',"
        " relname, attname, acl.grantee::regrole::text, acl.grantee, acl.privilege_type,"
        " acl.is_grantable FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid,"
        " aclexplode(attacl) AS acl WHERE relnamespace = to_regnamespace(%(schema)s) AND relkind"
        " IN ('r', 'v')",
        {"schema": source},
    )
    for kind, table, column, role, role_id, privilege, is_grantable in cursor.fetchall():
        if table is not None and table not in (*TABLE_NAMES, *VIEW_NAMES):
            continue
        what = sql.SQL(privilege)
        if kind == "COLUMN":
            what = sql.SQL("{} ({})").format(what, sql.Identifier(column))
        on = (
            sql.SQL("SCHEMA {}").format(sql.Identifier(target))
            if kind == "SCHEMA"
            else sql.Identifier(target, table)
        )
        grantee, option = _grantee(role, role_id), _option(is_grantable=is_grantable)
        cursor.execute(sql.SQL("GRANT {} ON {} TO {}{}").format(what, on, grantee, option))
    _copy_defaults(cursor, source, target)


def _copy_defaults(cursor: Cursor, source: str, target: str) -> None:
    cursor.execute(
        "SELECT defaclrole::regrole::text, defaclobjtype, acl.grantee::regrole::text, acl.grantee,"
        " acl.privilege_type, acl.is_grantable FROM pg_default_acl, aclexplode(defaclacl) AS acl"
        " WHERE defaclnamespace = to_regnamespace(%s)",
        (source,),
    )
    kinds = {"r": "TABLES", "S": "SEQUENCES", "f": "FUNCTIONS", "T": "TYPES"}
    for owner, kind, role, role_id, privilege, is_grantable in cursor.fetchall():
        cursor.execute(
            sql.SQL(
                "ALTER DEFAULT PRIVILEGES FOR ROLE {} IN SCHEMA {} GRANT {} ON {} TO {}{}"
            ).format(
                sql.SQL(owner),
                sql.Identifier(target),
                sql.SQL(privilege),
                sql.SQL(kinds[kind]),
                _grantee(role, role_id),
                _option(is_grantable=is_grantable),
            )
        )


def _grantee(role: str, role_id: int) -> sql.Composable:
    # regrole quotes a name that needs it; role 0 is PUBLIC.
    return sql.SQL("PUBLIC" if role_id == 0 else role)


def _option(*, is_grantable: bool) -> sql.Composable:
    return sql.SQL(" WITH GRANT OPTION" if is_grantable else "")
