"""What others made that reads our tables: views, rules, functions, foreign keys, policies.

Each keeps its identity: it is defined again with the same text, which then means the new tables, so
that its owner, grants, comments and whatever depends on it stay. What has no such statement
(materialized views, columns of a table's row type, inherited tables ...) is refused by name.
"""

from collections.abc import Callable, Sequence

from consumers.database.connection import Cursor
from consumers.database.dependants import TABLE_NAMES, Dependant, find_dependants, quoted
from consumers.rebuild.plan import Plan
from consumers.tables import SCHEMA

MATERIALIZED = "drop it, and create it again after the rebuild"


def plan_dependants(cursor: Cursor, plan: Plan) -> None:
    """Add every object of others that depends on the live tables."""
    by_catalogue: dict[str, list[Dependant]] = {}
    for dependant in find_dependants(cursor, SCHEMA):
        by_catalogue.setdefault(dependant.catalogue, []).append(dependant)
    handlers: dict[str, Callable[[Cursor, Plan, Sequence[Dependant]], None]] = {
        "pg_rewrite": _rules,
        "pg_proc": _functions,
        "pg_constraint": _foreign_keys,
        "pg_policy": _policies,
    }
    for catalogue, dependants in by_catalogue.items():
        if catalogue in handlers:
            handlers[catalogue](cursor, plan, dependants)
        else:
            _refuse(plan, [dependant for dependant in dependants if not _is_attached(dependant)])


def _is_attached(dependant: Dependant) -> bool:
    """Whether `attachments` carries it."""
    return dependant.is_attached and dependant.catalogue in {
        "pg_trigger",
        "pg_statistic_ext",
        "pg_publication_rel",
    }


def _refuse(plan: Plan, dependants: Sequence[Dependant]) -> None:
    plan.refused += [f"{dependant.what}: it depends on {dependant.on}" for dependant in dependants]


def _rules(cursor: Cursor, plan: Plan, dependants: Sequence[Dependant]) -> None:
    """Views, and other rules of views and tables that are not ours."""
    by_oid = {dependant.oid: dependant for dependant in dependants}
    cursor.execute(
        "SELECT rule.oid, pg_class.oid, relkind, format('%%I.%%I', nspname, relname), rulename ="
        " '_RETURN', pg_get_viewdef(pg_class.oid), array_to_string(reloptions, ', '),"
        " pg_get_ruledef(rule.oid), nspname LIKE 'pg_temp_%%', pg_has_role(relowner, 'USAGE') AND"
        " has_schema_privilege(pg_namespace.oid, 'CREATE'), relowner::regrole::text FROM pg_rewrite"
        " AS rule JOIN pg_class ON pg_class.oid = ev_class JOIN pg_namespace ON pg_namespace.oid ="
        " relnamespace WHERE rule.oid = ANY(%s) AND (nspname <> %s OR relname <> ALL(%s)) ORDER BY"
        " pg_class.oid",
        (list(by_oid), SCHEMA, list(TABLE_NAMES)),
    )
    for (
        oid,
        relation,
        kind,
        name,
        is_view,
        view,
        options,
        rule,
        is_temporary,
        is_allowed,
        owner,
    ) in cursor.fetchall():
        what = by_oid[oid].what
        if kind == "m":
            plan.refused.append(f"{what}: {MATERIALIZED}")
        elif is_temporary:
            plan.refused.append(f"{what}: it is another session's temporary view")
        elif not is_allowed:
            plan.refused.append(
                f"{what}: it belongs to {owner}, and only who has that role and may create objects"
                " in its schema can define it again"
            )
        elif is_view:
            plan.names.append(what)
            plan.relations.add(relation)
            plan.views.append((what, relation))
            # LOCK TABLE would lock the view's tables too, with its owner's rights. This changes
            # nothing, and locks the view alone.
            plan.locks.append(f"ALTER VIEW {name} OWNER TO {owner}")
            with_options = f" WITH ({options})" if options else ""
            plan.after.append(
                f"CREATE OR REPLACE VIEW {name}{with_options} AS {view.rstrip().rstrip(';')}"
            )
        else:
            plan.names.append(what)
            plan.relations.add(relation)
            plan.after.append(rule.rstrip(";").replace("CREATE RULE", "CREATE OR REPLACE RULE", 1))


def _functions(cursor: Cursor, plan: Plan, dependants: Sequence[Dependant]) -> None:
    """Functions whose body PostgreSQL has parsed (BEGIN ATOMIC)."""
    by_oid = {dependant.oid: dependant for dependant in dependants}
    cursor.execute(
        "SELECT pg_proc.oid, pg_get_functiondef(pg_proc.oid), pg_has_role(proowner, 'USAGE') AND"
        " has_schema_privilege(pronamespace, 'CREATE'), EXISTS (SELECT FROM pg_depend JOIN pg_type"
        " ON pg_type.oid = refobjid LEFT JOIN pg_type AS element ON element.oid = pg_type.typelem"
        " WHERE classid = 'pg_proc'::regclass AND objid = pg_proc.oid AND refclassid ="
        " 'pg_type'::regclass AND (pg_type.typnamespace = %(schema)s::regnamespace OR"
        " element.typnamespace = %(schema)s::regnamespace)) FROM pg_proc WHERE pg_proc.oid ="
        " ANY(%(oids)s) AND prokind IN ('f', 'p') ORDER BY 1",
        {"oids": list(by_oid), "schema": SCHEMA},
    )
    found = cursor.fetchall()
    _refuse(plan, [by_oid[oid] for oid in by_oid.keys() - {row[0] for row in found}])
    for oid, definition, is_allowed, has_row_type in found:
        if has_row_type:
            plan.refused.append(
                f"{by_oid[oid].what}: it takes or returns rows of {by_oid[oid].on}; let it return"
                " TABLE (...) instead"
            )
        elif not is_allowed:
            plan.refused.append(f"{by_oid[oid].what}: it belongs to another role")
        else:
            plan.names.append(by_oid[oid].what)
            plan.after.append(definition.rstrip())


def _foreign_keys(cursor: Cursor, plan: Plan, dependants: Sequence[Dependant]) -> None:
    by_oid = {dependant.oid: dependant for dependant in dependants}
    cursor.execute(
        "SELECT pg_constraint.oid, conrelid, conname, format('%%I.%%I', nspname, relname),"
        " pg_get_constraintdef(pg_constraint.oid), convalidated, pg_has_role(relowner, 'USAGE') AND"
        " contype = 'f' AND conparentid = 0 AND relkind = 'r', EXISTS (SELECT FROM pg_trigger WHERE"
        " tgconstraint = pg_constraint.oid AND tgenabled <> 'O'),"
        " quote_literal(obj_description(pg_constraint.oid, 'pg_constraint')), (SELECT"
        " format('SELECT count(*) FROM %%s AS child WHERE %%s AND NOT EXISTS (SELECT FROM %%I.%%I"
        " AS parent WHERE %%s)', conrelid::regclass, string_agg(format('child.%%I IS NOT NULL',"
        " mine.attname), ' AND '), %s::text, (SELECT relname FROM pg_class WHERE oid = confrelid),"
        " string_agg(format('parent.%%I = child.%%I', theirs.attname, mine.attname), ' AND ')) FROM"
        " unnest(conkey, confkey) AS pair (mine, theirs) JOIN pg_attribute AS mine ON mine.attrelid"
        " = conrelid AND mine.attnum = pair.mine JOIN pg_attribute AS theirs ON theirs.attrelid ="
        " confrelid AND theirs.attnum = pair.theirs) FROM pg_constraint"
        " JOIN pg_class ON pg_class.oid = conrelid JOIN pg_namespace ON pg_namespace.oid ="
        " relnamespace WHERE pg_constraint.oid = ANY(%s) ORDER BY pg_constraint.oid",
        (plan.target, list(by_oid)),
    )
    for (
        oid,
        relation,
        name,
        table,
        definition,
        is_valid,
        is_allowed,
        is_switched_off,
        comment,
        dangling,
    ) in cursor.fetchall():
        if not is_allowed:
            _refuse(plan, [by_oid[oid]])
            continue
        if is_switched_off:
            plan.refused.append(
                f"{by_oid[oid].what}: its triggers are disabled, which a new one's would not be"
            )
            continue
        plan.relations.add(relation)
        plan.names.append(by_oid[oid].what)
        if is_valid:
            plan.dangling.append((by_oid[oid].what, dangling))
        plan.locks.append(f"LOCK TABLE ONLY {table} IN ACCESS EXCLUSIVE MODE")
        unchecked = "" if definition.endswith(" NOT VALID") else " NOT VALID"
        plan.after.append(
            f"ALTER TABLE {table} DROP CONSTRAINT {quoted(name)}, ADD CONSTRAINT"
            f" {quoted(name)} {definition}{unchecked}"
        )
        if comment is not None:
            plan.after.append(f"COMMENT ON CONSTRAINT {quoted(name)} ON {table} IS {comment}")
        if is_valid:
            plan.validate.append(f"ALTER TABLE {table} VALIDATE CONSTRAINT {quoted(name)}")


def _policies(cursor: Cursor, plan: Plan, dependants: Sequence[Dependant]) -> None:
    """Policies of other people's tables that read ours."""
    by_oid = {dependant.oid: dependant for dependant in dependants}
    cursor.execute(
        "SELECT pg_policy.oid, polrelid, format('ALTER POLICY %%I ON %%I.%%I%%s%%s', polname,"
        " nspname, relname, ' USING (' || pg_get_expr(polqual, polrelid) || ')', ' WITH CHECK (' ||"
        " pg_get_expr(polwithcheck, polrelid) || ')'), pg_has_role(relowner, 'USAGE') FROM"
        " pg_policy JOIN pg_class ON pg_class.oid = polrelid JOIN pg_namespace ON pg_namespace.oid"
        " = relnamespace WHERE pg_policy.oid = ANY(%s) AND (nspname <> %s OR relname <> ALL(%s))"
        " ORDER BY pg_policy.oid",
        (list(by_oid), SCHEMA, list(TABLE_NAMES)),
    )
    for oid, relation, statement, is_allowed in cursor.fetchall():
        if is_allowed:
            plan.relations.add(relation)
            plan.names.append(by_oid[oid].what)
            plan.after.append(statement)
        else:
            _refuse(plan, [by_oid[oid]])
