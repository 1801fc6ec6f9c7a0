"""What others attached to our tables: indexes, constraints, triggers, rules, policies and so on.

Indexes and checks are made on the new tables while the old ones are in use; whatever may name other
tables is made once the new tables have their final names, and is taken off the old ones.
"""

from typing import NamedTuple

from consumers.database.connection import Cursor
from consumers.database.dependants import TABLE_NAMES, TABLES, quoted
from consumers.rebuild.plan import LIVE, Plan
from consumers.tables import PREVIOUS_SCHEMA, SCHEMA, Base

FILTERED_PUBLICATIONS = 150_000


class _Index(NamedTuple):
    table: str
    name: str
    definition: str
    qualified: str
    """Name of its table as the definition has it."""
    comment: str | None
    is_valid: bool


def own_names() -> frozenset[str]:
    """Names of the indexes and constraints that our tables' definition has."""
    tables = Base.metadata.tables.values()
    return frozenset(str(index.name) for table in tables for index in table.indexes) | frozenset(
        str(constraint.name) for table in tables for constraint in table.constraints
    )


def plan_attachments(cursor: Cursor, plan: Plan) -> None:
    """Add everything that is attached to the source's tables and not ours."""
    _indexes(cursor, plan)
    _constraints(cursor, plan)
    _triggers(cursor, plan)
    _rules(cursor, plan)
    _policies(cursor, plan)
    _statistics(cursor, plan)
    _publications(cursor, plan)


def _indexes(cursor: Cursor, plan: Plan) -> None:
    wanted, present = _read_indexes(cursor, SCHEMA), _read_indexes(cursor, plan.target)
    for key in present.keys() - wanted.keys():
        plan.before.append(f"DROP INDEX {quoted(plan.target, key[1])}")
    for key, index in wanted.items():
        if not index.is_valid:
            plan.refused.append(
                f"index {SCHEMA}.{index.name}: it is invalid; a CREATE INDEX CONCURRENTLY"
                " has failed or is still running"
            )
            continue
        if key in present:
            continue
        head, found, tail = index.definition.partition(f" ON {index.qualified} ")
        if not found:
            plan.refused.append(f"index {index.name}: {index.definition}")
            continue
        plan.before.append(f"{head} ON {quoted(plan.target, index.table)} {tail}")
        if index.comment is not None:
            name = quoted(plan.target, index.name)
            plan.before.append(f"COMMENT ON INDEX {name} IS {index.comment}")


def _read_indexes(cursor: Cursor, schema: str) -> dict[tuple[str, str], _Index]:
    cursor.execute(
        f"WITH {TABLES} SELECT name, relname, pg_get_indexdef(pg_class.oid), format('%%I.%%I',"
        " %(schema)s, name), quote_literal(obj_description(pg_class.oid, 'pg_class')), indisvalid"
        " FROM tables JOIN pg_index ON indrelid = tables.oid JOIN pg_class ON pg_class.oid ="
        " indexrelid WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND"
        " conrelid = tables.oid) AND relname <> ALL(%(own)s) ORDER BY 2",
        {"schema": schema, "names": list(TABLE_NAMES), "own": list(own_names())},
    )
    return {(row[0], row[1]): _Index(*row) for row in cursor.fetchall()}


def _constraints(cursor: Cursor, plan: Plan) -> None:
    wanted, present = (_read_constraints(cursor, schema) for schema in (SCHEMA, plan.target))
    for table, name in present.keys() - wanted.keys():
        plan.before.append(
            f"ALTER TABLE {quoted(plan.target, table)} DROP CONSTRAINT {quoted(name)}"
        )
    for (table, name), (kind, definition, is_valid, comment) in wanted.items():
        add = f"ADD CONSTRAINT {quoted(name)} {definition}"
        if kind == "f":
            # It may refer to another of our tables, which has its name only after the swap.
            live = quoted(SCHEMA, table)
            unchecked = "" if definition.endswith(" NOT VALID") else " NOT VALID"
            plan.after += [
                f"ALTER TABLE {quoted(PREVIOUS_SCHEMA, table)} DROP CONSTRAINT {quoted(name)}",
                f"ALTER TABLE {live} {add}{unchecked}",
            ]
            if comment is not None:
                plan.after.append(f"COMMENT ON CONSTRAINT {quoted(name)} ON {live} IS {comment}")
            if is_valid:
                plan.validate.append(f"ALTER TABLE {live} VALIDATE CONSTRAINT {quoted(name)}")
        elif kind == "p":
            plan.refused.append(f"primary key {name} of {SCHEMA}.{table}, which is not ours")
        elif (table, name) not in present:
            plan.before.append(f"ALTER TABLE {quoted(plan.target, table)} {add}")


class _Constraint(NamedTuple):
    kind: str
    definition: str
    is_valid: bool
    comment: str | None


def _read_constraints(cursor: Cursor, schema: str) -> dict[tuple[str, str], _Constraint]:
    cursor.execute(
        f"WITH {TABLES} SELECT name, conname, contype, pg_get_constraintdef(pg_constraint.oid),"
        " convalidated, quote_literal(obj_description(pg_constraint.oid, 'pg_constraint')) FROM"
        " tables JOIN pg_constraint ON conrelid = tables.oid WHERE contype IN"
        " ('c', 'u', 'x', 'p', 'f') AND conname <> ALL(%(own)s) ORDER BY 2",
        {"schema": schema, "names": list(TABLE_NAMES), "own": list(own_names())},
    )
    return {(row[0], row[1]): _Constraint(*row[2:]) for row in cursor.fetchall()}


def _triggers(cursor: Cursor, plan: Plan) -> None:
    cursor.execute(
        f"WITH {TABLES} SELECT name, tgname, pg_get_triggerdef(pg_trigger.oid), tgenabled,"
        " quote_literal(obj_description(pg_trigger.oid, 'pg_trigger')) FROM tables JOIN pg_trigger"
        " ON tgrelid = tables.oid WHERE NOT tgisinternal ORDER BY 1, 2",
        LIVE,
    )
    for table, name, definition, state, comment in cursor.fetchall():
        _move(plan, "TRIGGER", table, name, definition, comment)
        _set_state(plan, "TRIGGER", table, name, state)


def _rules(cursor: Cursor, plan: Plan) -> None:
    cursor.execute(
        f"WITH {TABLES} SELECT name, rulename, pg_get_ruledef(pg_rewrite.oid), ev_enabled,"
        " quote_literal(obj_description(pg_rewrite.oid, 'pg_rewrite')) FROM tables JOIN pg_rewrite"
        " ON ev_class = tables.oid ORDER BY 1, 2",
        LIVE,
    )
    for table, name, definition, state, comment in cursor.fetchall():
        _move(plan, "RULE", table, name, definition.rstrip(";"), comment)
        _set_state(plan, "RULE", table, name, state)


def _set_state(plan: Plan, kind: str, table: str, name: str, state: str) -> None:
    words = {"D": "DISABLE", "R": "ENABLE REPLICA", "A": "ENABLE ALWAYS"}
    if state in words:
        plan.after.append(
            f"ALTER TABLE {quoted(SCHEMA, table)} {words[state]} {kind} {quoted(name)}"
        )


def _policies(cursor: Cursor, plan: Plan) -> None:
    cursor.execute(
        f"WITH {TABLES} SELECT name, polname, format('CREATE POLICY %%I ON %%I.%%I AS %%s FOR %%s"
        " TO %%s%%s%%s', polname, %(schema)s, name, CASE WHEN polpermissive THEN 'PERMISSIVE' ELSE"
        " 'RESTRICTIVE' END, CASE polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w'"
        " THEN 'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL' END, (SELECT string_agg(CASE role WHEN 0"
        " THEN 'PUBLIC' ELSE role::regrole::text END, ', ') FROM unnest(polroles) AS role), ' USING"
        " (' || pg_get_expr(polqual, polrelid) || ')', ' WITH CHECK (' || pg_get_expr(polwithcheck,"
        " polrelid) || ')'), quote_literal(obj_description(pg_policy.oid, 'pg_policy')) FROM tables"
        " JOIN pg_policy ON polrelid = tables.oid ORDER BY 1, 2",
        LIVE,
    )
    for table, name, definition, comment in cursor.fetchall():
        _move(plan, "POLICY", table, name, definition, comment)


def _move(
    plan: Plan,
    kind: str,
    table: str,
    name: str,
    definition: str,
    comment: str | None,
) -> None:
    """Take it off the old table, so that its owner can drop it, and make it on the new one."""
    plan.after += [
        f"DROP {kind} {quoted(name)} ON {quoted(PREVIOUS_SCHEMA, table)}",
        definition,
    ]
    if comment is not None:
        live = quoted(SCHEMA, table)
        plan.after.append(f"COMMENT ON {kind} {quoted(name)} ON {live} IS {comment}")


def _statistics(cursor: Cursor, plan: Plan) -> None:
    cursor.execute(
        f"WITH {TABLES} SELECT tables.name, format('%%I.%%I', stxnamespace::regnamespace::text,"
        " stxname), pg_get_statisticsobjdef(pg_statistic_ext.oid), stxowner::regrole::text,"
        " quote_literal(obj_description(pg_statistic_ext.oid, 'pg_statistic_ext')),"
        " coalesce(stxstattarget, -1) FROM tables JOIN pg_statistic_ext ON stxrelid = tables.oid"
        " ORDER BY 2",
        LIVE,
    )
    for table, name, definition, owner, comment, target in cursor.fetchall():
        plan.after += [f"DROP STATISTICS {name}", definition]
        plan.after.append(f"ALTER STATISTICS {name} OWNER TO {owner}")
        if target >= 0:
            plan.after.append(f"ALTER STATISTICS {name} SET STATISTICS {target}")
        if comment is not None:
            plan.after.append(f"COMMENT ON STATISTICS {name} IS {comment}")
        plan.validate.append(f"ANALYZE {quoted(SCHEMA, table)}")


def _publications(cursor: Cursor, plan: Plan) -> None:
    # PostgreSQL 15 brought lists of columns and row filters.
    has_filters = cursor.connection.server_version >= FILTERED_PUBLICATIONS
    columns, condition = (
        (
            "(SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute WHERE"
            " attrelid = tables.oid AND attnum = ANY(prattrs))",
            "pg_get_expr(prqual, tables.oid)",
        )
        if has_filters
        else ("NULL", "NULL")
    )
    cursor.execute(
        f"WITH {TABLES} SELECT pubname, name, {columns}, {condition}, pg_has_role(pubowner,"
        " 'USAGE') FROM tables JOIN pg_publication_rel ON prrelid = tables.oid JOIN pg_publication"
        " ON pg_publication.oid = prpubid ORDER BY 1, 2",
        LIVE,
    )
    for publication, table, only, where, is_allowed in cursor.fetchall():
        if not is_allowed:
            plan.refused.append(f"publication {publication}: it belongs to another role")
            continue
        name, live = quoted(publication), quoted(SCHEMA, table)
        listed = f" ({only})" if only else ""
        filtered = f" WHERE ({where})" if where else ""
        plan.after += [
            f"ALTER PUBLICATION {name} DROP TABLE {quoted(PREVIOUS_SCHEMA, table)}",
            f"ALTER PUBLICATION {name} ADD TABLE {live}{listed}{filtered}",
        ]
        plan.publications.add(publication)
