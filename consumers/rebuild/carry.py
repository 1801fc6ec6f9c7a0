"""Plans how the objects that users added to the live tables move to the new ones.

What cannot be carried is refused by name before the replay begins, so that nothing is lost and no
hour is wasted; it is looked at again when the tables change places.
"""

import psycopg2
from psycopg2.errors import Error

from consumers.database.connection import Connection, Cursor
from consumers.database.dependants import TABLE_NAMES, TABLES, quoted
from consumers.errors import CuaProjectError
from consumers.rebuild.attachments import own_names, plan_attachments
from consumers.rebuild.dependants import plan_dependants
from consumers.rebuild.index_settings import plan_index_settings
from consumers.rebuild.permissions import plan_permissions
from consumers.rebuild.plan import LIVE, Plan
from consumers.rebuild.settings import plan_settings
from consumers.tables import SCHEMA


def make_plan(cursor: Cursor, target: str) -> Plan:
    """How to carry everything from the live tables to the target's, as it is now."""
    # Definitions are printed with every name qualified.
    cursor.execute("SET LOCAL search_path TO ''")
    plan = Plan(target)
    plan_attachments(cursor, plan)
    plan_dependants(cursor, plan)
    plan_permissions(cursor, plan)
    plan_settings(cursor, plan)
    plan_index_settings(cursor, plan)
    _refuse_extra_columns(cursor, plan)
    _refuse_parents(cursor, plan)
    _refuse_names(cursor, plan)
    _refuse_other_owners(cursor, plan)
    return plan


def require_carriable(connection: Connection, target: str) -> None:
    """CuaProjectError, naming each, when something could not be carried to the target's tables."""
    connection.rollback()
    with connection, connection.cursor() as cursor:
        plan = make_plan(cursor, target)
        _rehearse_views(cursor, plan)
        connection.rollback()
    require_nothing_refused(plan)


def require_nothing_refused(plan: Plan) -> None:
    """CuaProjectError, naming each, when something cannot be carried."""
    if plan.refused:
        listed = "".join(f"\n  {item}" for item in plan.refused)
        message = (
            "these are not ours and cannot be carried to the new tables; drop or move them, then"
            f" run the same command again:{listed}"
        )
        raise CuaProjectError(message)


ROUNDS = 2
"""Of making what is attached: comments and settings of what the first made come in the second."""


def run_before(connection: Connection, target: str) -> None:
    """Make on the target's tables what needs no lock on the live ones.

    CuaProjectError when something is refused, or does not fit the rows.
    """
    connection.rollback()
    with connection, connection.cursor() as cursor:
        for _ in range(ROUNDS):
            plan = make_plan(cursor, target)
            require_nothing_refused(plan)
            execute_all(cursor, plan.before)
        for what, query in plan.dangling:
            cursor.execute(query)
            row = cursor.fetchone()
            if row is not None and row[0]:
                message = (
                    f"{what}: {row[0]} of its rows refer to rows that the log does not give; delete"
                    " those rows or drop the constraint, then run the same command again"
                )
                raise CuaProjectError(message)


def execute_all(cursor: Cursor, statements: list[str]) -> None:
    """Run each. CuaProjectError, with the statement, when the database refuses one."""
    for statement in statements:
        try:
            cursor.execute(statement)
        except psycopg2.OperationalError:
            raise
        except Error as error:
            message = (
                f"an object that users added cannot be carried: {str(error).strip()} (in:"
                f" {statement}); drop it, then run the same command again"
            )
            raise CuaProjectError(message) from None


def _refuse_extra_columns(cursor: Cursor, plan: Plan) -> None:
    """A column that is not ours; one of ours that was renamed is no such column."""
    cursor.execute(
        f"WITH {TABLES} SELECT name, attname, format_type(atttypid, atttypmod) FROM tables JOIN"
        " pg_attribute ON attrelid = tables.oid WHERE attnum > 0 AND NOT attisdropped ORDER BY"
        " name, attnum",
        LIVE,
    )
    live = cursor.fetchall()
    cursor.execute(
        f"WITH {TABLES} SELECT name, attname, format_type(atttypid, atttypmod) FROM tables JOIN"
        " pg_attribute ON attrelid = tables.oid WHERE attnum > 0 AND NOT attisdropped ORDER BY"
        " name, attnum",
        {**LIVE, "schema": plan.target},
    )
    new = cursor.fetchall()
    names, present = {row[:2] for row in new}, {row[:2] for row in live}
    missing = [(table, kind) for table, name, kind in new if (table, name) not in present]
    for table, name, kind in live:
        if (table, name) in names:
            continue
        if (table, kind) in missing:
            missing.remove((table, kind))
            continue
        plan.refused.append(
            f"column {SCHEMA}.{table}.{name}: its values are not in the log; keep them in a table"
            " of your own, by id"
        )


def _refuse_parents(cursor: Cursor, plan: Plan) -> None:
    cursor.execute(
        f"WITH {TABLES} SELECT pg_describe_object('pg_class'::regclass, tables.oid, 0) || ': it"
        " inherits from ' || inhparent::regclass::text FROM tables JOIN pg_inherits ON inhrelid ="
        " tables.oid UNION ALL SELECT pg_describe_object('pg_class'::regclass, tables.oid, 0) ||"
        " ': it belongs to ' || pg_describe_object(refclassid, refobjid, 0) FROM tables JOIN"
        " pg_depend ON classid = 'pg_class'::regclass AND objid = tables.oid AND deptype IN ('e',"
        " 'x') UNION ALL SELECT pg_describe_object('pg_class'::regclass, tables.oid, objsubid) ||"
        " ': it has a security label' FROM tables JOIN pg_seclabel ON classoid ="
        " 'pg_class'::regclass AND objoid = tables.oid UNION ALL SELECT"
        " pg_describe_object('pg_class'::regclass, tables.oid, 0) || format(': the subscription %%I"
        " replicates into it', subname) FROM tables JOIN pg_subscription_rel ON srrelid ="
        " tables.oid JOIN pg_subscription ON pg_subscription.oid = srsubid",
        LIVE,
    )
    plan.refused += [row[0] for row in cursor.fetchall()]


def _refuse_names(cursor: Cursor, plan: Plan) -> None:
    """Relations and types of others that have the name of one that comes in."""
    cursor.execute(
        f"WITH {TABLES}, own AS (SELECT oid FROM tables UNION ALL SELECT indexrelid FROM pg_index"
        " WHERE indrelid IN (SELECT oid FROM tables)) SELECT"
        " pg_describe_object('pg_class'::regclass, pg_class.oid, 0) FROM pg_class WHERE"
        " relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s) AND relname ="
        " ANY(%(taken)s) AND oid NOT IN (SELECT oid FROM own) UNION ALL SELECT"
        " pg_describe_object('pg_type'::regclass, pg_type.oid, 0) FROM pg_type WHERE typnamespace ="
        " (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s) AND typname = ANY(%(names)s)"
        " AND typrelid = 0",
        {**LIVE, "taken": [*TABLE_NAMES, *own_names()]},
    )
    plan.refused += [
        f"{row[0]}: its name is that of one of our tables or indexes; rename it"
        for row in cursor.fetchall()
    ]


def _refuse_other_owners(cursor: Cursor, plan: Plan) -> None:
    cursor.execute(
        f"WITH {TABLES} SELECT DISTINCT relowner::regrole::text FROM tables WHERE NOT"
        " pg_has_role(relowner, 'USAGE')",
        LIVE,
    )
    plan.refused += [
        f"the tables belong to {row[0]}: connect as a role that is a member of it"
        for row in cursor.fetchall()
    ]


def _rehearse_views(cursor: Cursor, plan: Plan) -> None:
    """Define each view on the target's tables, for a moment, to see whether it fits them."""
    for what, oid in plan.views:
        cursor.execute(f"SET LOCAL search_path TO {quoted(SCHEMA)}")
        cursor.execute("SELECT pg_get_viewdef(%s)", (oid,))
        row = cursor.fetchone()
        # Unqualified names now mean our tables; the target's come first.
        cursor.execute(f"SET LOCAL search_path TO {quoted(plan.target)}, {quoted(SCHEMA)}")
        cursor.execute("SAVEPOINT rehearsal")
        try:
            cursor.execute(
                f"CREATE VIEW {quoted(plan.target)}.rehearsal AS {row[0] if row else ''}"
            )
            before, after = _columns(cursor, oid), _columns(cursor, None, plan.target)
            if before != after:
                changed = sorted(set(before) ^ set(after))
                plan.refused.append(
                    f"{what}: its columns would change ({', '.join(map(' '.join, changed))})"
                )
        except psycopg2.ProgrammingError as error:
            reason = str(error).strip().splitlines()[0]
            plan.refused.append(f"{what}: it does not fit the new tables ({reason})")
        cursor.execute("ROLLBACK TO SAVEPOINT rehearsal")


def _columns(cursor: Cursor, oid: int | None, schema: str = "") -> list[tuple[str, str]]:
    cursor.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid ="
        " coalesce(%s, (SELECT pg_class.oid FROM pg_class JOIN pg_namespace ON pg_namespace.oid ="
        " relnamespace WHERE nspname = %s AND relname = 'rehearsal')) AND attnum > 0 ORDER BY"
        " attnum",
        (oid, schema),
    )
    return [(name, kind) for name, kind in cursor.fetchall()]
