"""Analyses a statement: its kind, whether it orders its rows, and which of 22 skills it needs.

Groups of entries that need a single skill allow learning skills one after the other.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, Literal

from sqlglot import expressions as exp

from producer.errors import UsageError
from schemas.distribution import install_command
from schemas.entry import EntryContent

try:
    import sqlglot
    from sqlglot import expressions as exp
except ImportError as error:
    MESSAGE = f"DB Bench reads SQL with sqlglot, which is missing; run {install_command('sql')}"
    raise UsageError(MESSAGE) from error

# sqlglot logs remarks about dialects; we report what we cannot parse ourselves.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

Kind = Literal["select", "insert", "update", "delete"]


class GoldUnreadableError(ValueError):
    """The SQL cannot be parsed, or is not a SELECT, INSERT, UPDATE or DELETE."""


@lru_cache(maxsize=4096)
def parse(sql: str) -> exp.Expr:
    """The syntax tree of one MySQL statement. Must not be modified. Raises GoldUnreadableError."""
    try:
        trees = [tree for tree in sqlglot.parse(sql, read="mysql") if tree is not None]
    except Exception as error:  # a parser's bug on a data set's text counts as the text's mistake
        message = f"it cannot be read as MySQL: {(str(error) or repr(error)).splitlines()[0]}"
        raise GoldUnreadableError(message) from error
    if len(trees) != 1:
        message = f"it has {len(trees)} statements; one is needed"
        raise GoldUnreadableError(message)
    tree = trees[0]
    while isinstance(tree, exp.Subquery | exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Select) and not tree.expressions:
        message = "it selects nothing"
        raise GoldUnreadableError(message)
    return tree


def kind_of(sql: str) -> Kind:
    """The kind of statement. Raises GoldUnreadableError."""
    tree = parse(sql)
    match tree:
        case exp.Query():
            return "select"
        case exp.Insert():
            return "insert"
        case exp.Update():
            return "update"
        case exp.Delete():
            return "delete"
        case _:
            message = "it is no SELECT, INSERT, UPDATE or DELETE"
            raise GoldUnreadableError(message)


def is_ordered(sql: str) -> bool:
    """Whether the rows have an order: an ORDER BY of the whole statement, not of a subquery.

    A text that cannot be parsed is ordered if it contains ORDER BY.
    """
    try:
        return parse(sql).args.get("order") is not None
    except GoldUnreadableError:
        return "order by" in " ".join(sql.lower().split())


SKILLS: Final = (
    "select",
    "insert",
    "delete",
    "update",
    "where_single_condition",
    "where_multiple_conditions",
    "where_nested_conditions",
    "order_by_single_column",
    "order_by_multiple_columns_same_direction",
    "order_by_multiple_columns_different_directions",
    "limit_only",
    "limit_and_offset",
    "column_alias",
    "table_alias",
    "group_by_single_column",
    "group_by_multiple_columns",
    "having_single_condition_with_aggregate",
    "having_multiple_conditions_with_aggregate",
    "having_aggregate_calculation",
    "subquery_single",
    "subquery_multiple",
    "subquery_nested",
)
KINDS: Final = frozenset({"select", "insert", "delete", "update"})
ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)


def skills_of(sql: str) -> tuple[str, ...]:
    """The skills that the statement needs, sorted. Raises GoldUnreadableError.

    Clauses are taken from the whole statement (from the SELECT of INSERT ... SELECT), WHERE and
    aliases from its outermost SELECT that has one. Subqueries count anywhere.
    """
    tree = parse(sql)
    query = tree.expression if isinstance(tree, exp.Insert) else tree
    main = query if isinstance(query, exp.Query) else tree
    return tuple(
        sorted(
            {
                *_kinds(tree),
                *_where(tree),
                *_order(main),
                *_limit(main),
                *_aliases(tree),
                *_groups(main),
                *_having(main),
                *_subqueries(tree),
            }
        )
    )


def _kinds(tree: exp.Expr) -> Iterator[str]:
    for kind, name in (
        (exp.Select, "select"),
        (exp.Insert, "insert"),
        (exp.Delete, "delete"),
        (exp.Update, "update"),
    ):
        if tree.find(kind):
            yield name


def _bare(condition: exp.Expr) -> exp.Expr:
    """The condition without surrounding brackets and NOT."""
    while isinstance(condition, exp.Paren | exp.Not):
        condition = condition.this
    return condition


def _where(tree: exp.Expr) -> Iterator[str]:
    where = tree.args.get("where") or tree.find(exp.Where)
    if where is None:
        return
    condition = _bare(where.this)
    if not isinstance(condition, exp.Connector):
        yield "where_single_condition"
    elif _is_chain(condition):
        yield "where_multiple_conditions"
    else:
        yield "where_nested_conditions"


def _is_chain(condition: exp.Connector) -> bool:
    """Whether the condition is A AND B AND C, or the same with OR, without the other connector."""
    for part in (condition.left, condition.right):
        inner = _bare(part)
        if isinstance(inner, exp.Connector) and not (
            type(inner) is type(condition) and _is_chain(inner)
        ):
            return False
    return True


def _order(main: exp.Expr) -> Iterator[str]:
    order = main.args.get("order")
    if order is None:
        return
    directions = {bool(key.args.get("desc")) for key in order.expressions}
    if len(order.expressions) == 1:
        yield "order_by_single_column"
    elif len(directions) == 1:
        yield "order_by_multiple_columns_same_direction"
    else:
        yield "order_by_multiple_columns_different_directions"


def _limit(main: exp.Expr) -> Iterator[str]:
    if main.args.get("limit"):
        yield "limit_and_offset" if main.args.get("offset") else "limit_only"


def _aliases(tree: exp.Expr) -> Iterator[str]:
    select = tree.find(exp.Select)
    if select is not None:
        if any(isinstance(column, exp.Alias) for column in select.expressions):
            yield "column_alias"
        sources = [select.args.get("from_") or select.args.get("from")]
        sources += select.args.get("joins") or []
        if any(source is not None and source.this.alias for source in sources):
            yield "table_alias"
    elif isinstance(tree, exp.Update | exp.Delete) and tree.this and tree.this.alias:
        yield "table_alias"


def _groups(main: exp.Expr) -> Iterator[str]:
    group = main.args.get("group")
    if group is not None:
        is_single = len(group.expressions) == 1
        yield "group_by_single_column" if is_single else "group_by_multiple_columns"


def _having(main: exp.Expr) -> Iterator[str]:
    having = main.args.get("having")
    if having is None:
        return
    aggregates = {
        column.alias
        for column in main.expressions
        if isinstance(column, exp.Alias) and column.find(exp.AggFunc)
    }

    def is_aggregated(node: exp.Expr) -> bool:
        names = {column.name for column in node.find_all(exp.Column)}
        return node.find(exp.AggFunc) is not None or bool(names & aggregates)

    condition = _bare(having.this)
    if not is_aggregated(condition):
        return
    is_multiple = isinstance(condition, exp.Connector)
    number = "multiple_conditions" if is_multiple else "single_condition"
    yield f"having_{number}_with_aggregate"
    if any(map(is_aggregated, condition.find_all(*ARITHMETIC))):
        yield "having_aggregate_calculation"


def _subqueries(tree: exp.Expr) -> Iterator[str]:
    found = [node for node in tree.find_all(exp.Subquery, exp.Exists) if _is_subquery(node, tree)]
    inner = [node for node in found if _has_ancestor(node, found)]
    num_outer = len(found) - len(inner)
    if inner:
        yield "subquery_nested"
    if num_outer > 1:
        yield "subquery_multiple"
    elif num_outer == 1 and not inner:
        yield "subquery_single"


def _is_subquery(node: exp.Expr, tree: exp.Expr) -> bool:
    """Whether the node is a real subquery and not just brackets around a part of a UNION."""
    is_part = node is tree or isinstance(node.parent, exp.SetOperation)
    return isinstance(node.this, exp.Query) and not is_part


def _has_ancestor(node: exp.Expr, others: Sequence[exp.Expr]) -> bool:
    parent = node.parent
    while parent is not None:
        if any(parent is other for other in others):
            return True
        parent = parent.parent
    return False


GROUPED: Final = frozenset({"group_by_single_column", "group_by_multiple_columns"})
HAVING: Final = frozenset(
    {"having_single_condition_with_aggregate", "having_multiple_conditions_with_aggregate"}
)
ORDERED: Final = frozenset({"order_by_single_column"})
FILTERED: Final = frozenset({"where_single_condition"})
NEEDED_BY: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(HAVING, GROUPED),
    "having_aggregate_calculation": GROUPED | HAVING,
    "limit_only": ORDERED,
    "limit_and_offset": ORDERED,
    "order_by_single_column": FILTERED,
    "order_by_multiple_columns_same_direction": FILTERED,
    "order_by_multiple_columns_different_directions": FILTERED,
    "column_alias": FILTERED,
    "table_alias": FILTERED,
    "group_by_single_column": FILTERED,
    "group_by_multiple_columns": FILTERED,
    "subquery_single": FILTERED,
    "subquery_multiple": FILTERED | {"where_multiple_conditions"},
    "subquery_nested": FILTERED,
}
"""Maps a target skill to further skills that its entries may need. Any target may also need its
statement's kind."""


def only_skill(entry: EntryContent) -> str | None:
    """The skill of an entry that needs exactly one; None otherwise."""
    return entry.skills[0] if len(entry.skills) == 1 else None


def target_skill(entry: EntryContent) -> str | None:
    """The one skill that an entry is about; None if there are several, or none.

    Ignores the statement's kind and the skills that this skill needs. An entry that needs only a
    kind is about that kind.
    """
    skills = frozenset(entry.skills)
    targets = [
        skill
        for skill in SKILLS
        if skill in skills
        and not skills - {skill} - NEEDED_BY.get(skill, frozenset()) - (KINDS - {skill})
        and (skill not in KINDS or len(skills) == 1)
    ]
    return targets[0] if len(targets) == 1 else None


def single_skill_groups(
    entries: Iterable[EntryContent], *, by_target: bool = False
) -> dict[str, list[EntryContent]]:
    """Group entries by skill, in the order of SKILLS. Entries with several skills are left out."""
    groups: dict[str, list[EntryContent]] = {skill: [] for skill in SKILLS}
    for entry in entries:
        skill = target_skill(entry) if by_target else only_skill(entry)
        if skill is not None:
            groups[skill].append(entry)
    return groups
