"""Translates MySQL statements for the embedded SQLite through their syntax trees.

Behaviour in which SQLite differs is spelled out: division, DECIMAL results, comparisons of texts
without case and with numbers, strings in double quotes, LIMIT in UPDATE and DELETE, the order of
assignments. What MySQL refuses is refused (ONLY_FULL_GROUP_BY, LIMIT in an IN subquery, table names
in another case). docs/dbbench_sql.md lists the remaining differences.
"""

import logging
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, NoReturn

import sqlglot
from sqlglot import expressions as exp
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import SqlglotError

from producer.sql_execution.mysql_functions import COLLATION
from producer.sql_execution.mysql_scales import COMPARISONS, Types, is_text_type, scale_of
from producer.sql_execution.mysql_tested import untested
from producer.sql_execution.mysql_typed import call, compare_times, show_floats, write_texts

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

MAX_NODES: Final = 2_000
MAX_DEPTH: Final = 100
CUT_OFF: Final = frozenset({"ORDER", "GROUP"})
ROW_NUMBERS: Final = frozenset({"rowid", "oid", "_rowid_"})
"""Columns that every SQLite table has and no MySQL table."""

CALLS: Final[dict[type[exp.Expr], str]] = {
    exp.IntDiv: "mysql_div",
    exp.Mod: "mysql_mod",
    exp.Concat: "mysql_concat",
    exp.ConcatWs: "mysql_concat_ws",
    exp.Left: "mysql_left",
    exp.Right: "mysql_right",
}
"""Maps an operator or a function to our function."""

Tables = Mapping[str, Mapping[str, str]]
"""Maps tables to columns to types, in the form of `mysql_scales.Types`."""


class Embedded(SQLite):
    """SQLite's dialect with names in backticks.

    SQLite takes an unknown name in double quotes for a string.
    """

    class Tokenizer(SQLite.Tokenizer):
        """Sets how names are quoted."""

        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`"]


class NotMysqlError(ValueError):
    """MySQL would refuse the statement. The message is for the agent."""


def _refuse(message: str) -> NoReturn:
    raise NotMysqlError(message)


def translate(sql: str, tables: Tables) -> str:
    """Translate a statement to SQLite. Raises NotMysqlError."""
    try:
        trees = [tree for tree in sqlglot.parse(sql, read="mysql") if tree is not None]
    except Exception as error:  # a parser's bug on an agent's text counts as the text's mistake
        is_parsers = isinstance(error, SqlglotError | RecursionError) and str(error)
        reason = str(error).splitlines()[0] if is_parsers else "it cannot be read"
        message = f"you have an error in your SQL syntax: {reason}"
        raise NotMysqlError(message) from error
    if len(trees) != 1:
        _refuse("you can only execute one statement at a time")
    tree = trees[0]
    _check_size(tree)
    _check_clauses(tree)
    if (function := untested(tree)) is not None:
        _refuse(f"the function {function} is not supported by this database")
    _check_names(tree, tables)
    for select in list(tree.find_all(exp.Select)):
        _check_groups(select)
    _check_subqueries(tree)
    types = {
        column.lower(): kind for columns in tables.values() for column, kind in columns.items()
    }
    write_texts(tree, types)
    compare_times(tree, types)
    _number_conversions(tree, types)
    _round_compared(tree, types)
    _round_results(tree, types)
    show_floats(tree, types, tables)
    _texts(tree, types)
    _distinct_texts(tree)
    if isinstance(tree, exp.Update):
        _assign_in_order(tree)
    tree = _functions(tree)
    tree = _limited_change(tree)
    try:
        return tree.sql(dialect=Embedded, identify=True)
    except Exception as error:  # likewise for statements that sqlglot cannot write
        message = "the statement cannot be executed here"
        raise NotMysqlError(message) from error


def _check_size(tree: exp.Expr) -> None:
    """Limit the tree, because the following steps are recursive and their time grows with it."""
    level, num_nodes, depth = [tree], 0, 0
    while level:
        num_nodes, depth = num_nodes + len(level), depth + 1
        if num_nodes > MAX_NODES or depth > MAX_DEPTH:
            _refuse("the statement is too complex")
        level = [child for node in level for child in node.iter_expressions()]


def _check_clauses(tree: exp.Expr) -> None:
    """Refuse clauses that only SQLite has, and changes that name no table."""
    is_change = isinstance(tree, exp.Insert | exp.Update | exp.Delete)
    if is_change and not isinstance(tree.this, exp.Table | exp.Schema):
        _refuse("you have an error in your SQL syntax: it names no table to be changed")
    aliases = [item.this for item in tree.find_all(exp.TableAlias) if item.this is not None]
    conflict = tree.find(exp.OnConflict)
    for clause, is_there in (
        # The parser takes these words for aliases of the table.
        *(
            (aliase.name, aliase.name.upper() in CUT_OFF and not aliase.args.get("quoted"))
            for aliase in aliases
        ),
        ("RETURNING", tree.find(exp.Returning) is not None),
        ("ON CONFLICT", conflict is not None and not conflict.args.get("duplicate")),
        # SQLite's OR FAIL would keep the rows before the refused one.
        ("IGNORE", isinstance(tree, exp.Insert) and bool(tree.args.get("ignore"))),
        ("INSERT OR", isinstance(tree, exp.Insert) and bool(tree.args.get("alternative"))),
    ):
        if is_there:
            _refuse(f"you have an error in your SQL syntax near {clause}")


def _check_names(tree: exp.Expr, tables: Tables) -> None:
    named = {cte.alias for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if table.name and table.name not in tables and table.name not in named:
            _refuse(f"Table '{table.name}' doesn't exist")
    known = {column.lower() for columns in tables.values() for column in columns}
    known |= {alias.alias.lower() for alias in tree.find_all(exp.Alias)}
    known |= {
        name.name.lower() for alias in tree.find_all(exp.TableAlias) for name in alias.columns
    }
    listed = [name for schema in tree.find_all(exp.Schema) for name in schema.expressions]
    for column in (*tree.find_all(exp.Column), *listed):
        if column.name.lower() in ROW_NUMBERS - known:
            _refuse(f"Unknown column '{column.name}'")


def _check_subqueries(tree: exp.Expr) -> None:
    for node in tree.find_all(exp.From, exp.Join):
        if isinstance(node.this, exp.Subquery) and not node.this.alias:
            _refuse("Every derived table must have its own alias")
    for node in tree.find_all(exp.In):
        query = node.args.get("query")
        if query is not None and query.this.args.get("limit") is not None:
            _refuse("LIMIT in an IN subquery is not supported")


def _own(select: exp.Select, node: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """Nodes of a kind below `node` that belong to this SELECT and not to a subquery."""
    for found in node.find_all(kind):
        if found.find_ancestor(exp.Select) is select:
            yield found


def _check_groups(select: exp.Select) -> None:
    """ONLY_FULL_GROUP_BY: every selected column must be grouped by or aggregated."""
    group = select.args.get("group")
    keys: list[exp.Expr] = list(group.expressions) if group is not None else []
    shown = select.expressions
    if group is None and not any(
        found.find_ancestor(exp.Window) is None
        for column in shown
        for found in _own(select, column, exp.AggFunc)
    ):
        return
    names = {key.name.lower() for key in keys if isinstance(key, exp.Column)}
    for column in shown:
        bare = column.this if isinstance(column, exp.Alias) else column
        is_key = any(bare == key for key in keys) or column.alias_or_name.lower() in names
        positions = {key.name for key in keys if isinstance(key, exp.Literal)}
        if is_key or str(shown.index(column) + 1) in positions:
            continue
        if isinstance(bare, exp.Star):
            raise NotMysqlError(_not_grouped("*"))
        for found in _own(select, bare, exp.Column):
            if found.find_ancestor(exp.AggFunc) is None and found.name.lower() not in names:
                raise NotMysqlError(_not_grouped(found.name))


def _not_grouped(name: str) -> str:
    return f"'{name}' isn't in GROUP BY (sql_mode=only_full_group_by)"


def _round_results(tree: exp.Expr, types: Types) -> None:
    """Round selected DECIMALs to their scale; within expressions MySQL keeps more digits."""
    for select in tree.find_all(exp.Select):
        for column in list(select.expressions):
            value = column.this if isinstance(column, exp.Alias) else column
            scale = scale_of(value, types)
            if not scale:
                continue
            rounded = call("mysql_round", value, _number(scale))
            if isinstance(column, exp.Alias):
                column.set("this", rounded)
            else:
                # The name that MySQL gives the column, for queries that sort by it.
                column.replace(exp.alias_(rounded, column.sql("mysql"), quoted=True))


def _comparisons(tree: exp.Expr) -> list[exp.Binary]:
    """The comparisons of a statement. `SET a = 1` is not one."""
    return [it for it in tree.find_all(*COMPARISONS) if not isinstance(it.parent, exp.Update)]


def _round_compared(tree: exp.Expr, types: Types) -> None:
    """Round DECIMALs in comparisons, which are exact: 0.1 + 0.2 equals 0.3."""
    for node in _comparisons(tree):
        for side in (node.left, node.right):
            scale = scale_of(side, types)
            if scale and side.find(exp.Div, exp.Avg) is None:
                side.replace(call("mysql_round", side, _number(scale)))


def _is_text(node: exp.Expr, types: Types) -> bool:
    if isinstance(node, exp.Column):
        return is_text_type(types.get(node.name.lower()))
    return isinstance(node, exp.Literal) and node.is_string


def _is_number(node: exp.Expr, types: Types) -> bool:
    return scale_of(node, types) is not None


def _number_conversions(tree: exp.Expr, types: Types) -> None:
    """Convert texts that are compared with numbers."""
    for node in _comparisons(tree):
        for text, other in ((node.left, node.right), (node.right, node.left)):
            if _is_text(text, types) and _is_number(other, types):
                text.replace(exp.Anonymous(this="mysql_number", expressions=[text.copy()]))


def _texts(tree: exp.Expr, types: Types) -> None:
    """Compare string literals without case, and let a backslash escape in LIKE."""
    for node in _comparisons(tree):
        for side in (node.left, node.right):
            if isinstance(side, exp.Literal) and side.is_string:
                side.replace(_collated(side.copy()))
    for among in list(tree.find_all(exp.In)):
        if not isinstance(among.this, exp.Column) or _is_text(among.this, types):
            among.this.replace(_collated(among.this.copy()))
    for like in list(tree.find_all(exp.Like)):
        if not isinstance(like.parent, exp.Escape):
            like.replace(exp.Escape(this=like.copy(), expression=exp.Literal.string("\\")))


def _distinct_texts(tree: exp.Expr) -> None:
    """Make DISTINCT compare computed texts by the collation, as it compares columns."""
    counted = [part for item in tree.find_all(exp.Distinct) for part in item.expressions]
    selected = [
        column.this if isinstance(column, exp.Alias) else column
        for select in tree.find_all(exp.Select)
        if select.args.get("distinct") is not None
        for column in select.expressions
    ]
    for part in counted + selected:
        if isinstance(part, exp.Func):
            part.replace(_collated(part.copy()))


def _collated(node: exp.Expr) -> exp.Expr:
    return exp.Collate(this=exp.Paren(this=node), expression=exp.to_identifier(COLLATION))


def _assign_in_order(update: exp.Update) -> None:
    """Substitute earlier assignments into later ones, because MySQL assigns from left to right."""
    assigned: dict[str, exp.Expr] = {}
    for assignment in update.expressions:
        if not isinstance(assignment, exp.EQ) or not isinstance(assignment.left, exp.Column):
            continue
        for column in list(assignment.right.find_all(exp.Column)):
            earlier = assigned.get(column.name.lower())
            if earlier is not None:
                column.replace(exp.Paren(this=earlier.copy()))
        _check_size(assignment)
        target = assignment.left
        assigned[target.name.lower()] = assignment.right
        target.set("table", None)


def _rewritten(node: exp.Expr) -> exp.Expr:
    """What MySQL means by a node, or the node itself if SQLite means the same."""
    whole = exp.DataType.build("BIGINT")
    match node:
        case exp.Div():
            # `typed` and `safe` make sqlglot write the division unchanged.
            real = exp.Cast(this=node.left.copy(), to=exp.DataType.build("DOUBLE"))
            by = exp.Paren(this=node.right.copy())
            new: exp.Expr = exp.Div(this=real, expression=by, typed=True, safe=True)
        case exp.Round():
            new = call("mysql_round", node.this, node.args.get("decimals") or _number(0))
        case exp.Floor() | exp.Ceil():
            new = exp.Cast(this=node.copy(), to=whole)
        case exp.Length() if node.args.get("binary"):
            new = call("length", exp.Cast(this=node.this.copy(), to=exp.DataType.build("BLOB")))
        case _:
            name = next((name for kind, name in CALLS.items() if type(node) is kind), None)
            new = node if name is None else call(name, *_arguments(node))
    return new


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    given = (node.args.get("this"), node.args.get("expression"), *node.args.get("expressions", ()))
    return [item for item in given if isinstance(item, exp.Expr)]


def _functions(tree: exp.Expr) -> exp.Expr:
    # Start from the leaves, so that rewritten nodes are not visited again.
    for node in reversed(list(tree.walk())):
        new = _rewritten(node)
        if new is not node and node is tree:
            tree = new
        elif new is not node:
            node.replace(new)
    return tree


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _limited_change(tree: exp.Expr) -> exp.Expr:
    """Rewrite UPDATE and DELETE with ORDER BY or LIMIT to select the affected rows by rowid."""
    if not isinstance(tree, exp.Update | exp.Delete):
        return tree
    order, limit = tree.args.get("order"), tree.args.get("limit")
    if order is None and limit is None:
        return tree
    table = tree.this.copy()
    rows = exp.Select(expressions=[exp.column("rowid")]).from_(table)
    for name in ("where", "order", "limit"):
        part = tree.args.get(name)
        if part is not None:
            rows.set(name, part.copy())
            tree.set(name, None)
    tree.set(
        "where", exp.Where(this=exp.In(this=exp.column("rowid"), query=exp.Subquery(this=rows)))
    )
    return tree
