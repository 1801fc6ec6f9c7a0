"""Effects of column types in MySQL: numbers written as texts, and comparisons of times."""

from collections.abc import Iterator, Mapping
from typing import Final, cast

from sqlglot import expressions as exp

from producer.sql_execution.mysql_scales import (
    COMPARISONS,
    TIMES,
    Types,
    inexact_type,
    is_text_type,
    scale_of,
    shown_digits,
)
from producer.sql_execution.mysql_values import MIDNIGHT, TimeKind, time_text

OF_TEXTS: Final = (
    *(exp.Concat, exp.ConcatWs, exp.Left, exp.Right, exp.Substring, exp.Replace, exp.Trim),
    *(exp.Upper, exp.Lower, exp.Length, exp.Like, exp.RegexpLike, exp.StrPosition),
)
"""Functions and operators that convert a number to a text."""
CHARACTERS: Final = frozenset({"CHAR", "TEXT", "VARCHAR"})


def write_texts(tree: exp.Expr, types: Types) -> None:
    """Write numbers in texts with the digits of their type: 300.00 for a DECIMAL(10,2)."""
    for node in list(tree.walk()):
        if isinstance(node, OF_TEXTS) or (
            isinstance(node, exp.Cast) and node.to.this.name in CHARACTERS
        ):
            for argument in list(node.iter_expressions()):
                _write_text(argument, types)
    for assignment in tree.expressions if isinstance(tree, exp.Update) else ():
        target = assignment.this
        if isinstance(target, exp.Column) and is_text_type(types.get(target.name.lower())):
            _write_text(assignment.expression, types)


def _write_text(value: exp.Expr, types: Types) -> None:
    name = inexact_type(value, types)
    scale = scale_of(value, types) if name is None else shown_digits(name)
    if scale:
        value.replace(call("mysql_decimal_text", value, exp.Literal.number(scale)))
    elif name is not None:
        shown = call("mysql_shown_float", value) if name == "FLOAT" else value
        value.replace(call("mysql_text", shown))


def show_floats(tree: exp.Expr, types: Types, tables: Mapping[str, Types]) -> None:
    """Round displayed FLOATs to six digits.

    Comparisons, sorting and computations keep all digits. In a UNION this applies to columns that
    are FLOAT in every branch.
    """
    branches = list(_branches(tree))
    for select in branches:
        _name_columns(select, tables)
    for columns in list(zip(*(select.expressions for select in branches), strict=False)):
        if all((inexact_type(_value(one), types) or "").startswith("FLOAT") for one in columns):
            for select, column in zip(branches, columns, strict=True):
                _show_float(select, column, types)


def _branches(tree: exp.Expr) -> Iterator[exp.Select]:
    """The SELECTs that produce the statement's rows."""
    if isinstance(tree, exp.Select):
        yield tree
    elif isinstance(tree, exp.SetOperation):
        yield from _branches(tree.left)
        yield from _branches(tree.right)


def _value(column: exp.Expr) -> exp.Expr:
    found: exp.Expr = column.this if isinstance(column, exp.Alias) else column
    return found


def _show_float(select: exp.Select, column: exp.Expr, types: Types) -> None:
    value = _value(column).copy()
    digits = shown_digits(inexact_type(value, types) or "")
    shown = (
        call("mysql_shown_float", value)
        if digits is None
        else call("mysql_round", value, exp.Literal.number(digits))
    )
    _sort_by_value(select, column.alias_or_name, value)
    if isinstance(column, exp.Alias):
        column.set("this", shown)
    else:
        name = column.name if isinstance(column, exp.Column) else column.sql("mysql")
        column.replace(exp.alias_(shown, name, quoted=True))


def _sort_by_value(select: exp.Select, name: str, value: exp.Expr) -> None:
    """Sort by the full value: in ORDER BY, SQLite takes a bare name for the displayed column.

    Inside an expression it does not.
    """
    order = select.args.get("order")
    for column in list(order.find_all(exp.Column)) if order is not None else ():
        if not column.table and column.name.lower() == name.lower():
            zero = exp.Literal.number(0)
            column.replace(exp.Paren(this=exp.Add(this=value.copy(), expression=zero)))


def _name_columns(select: exp.Select, tables: Mapping[str, Types]) -> None:
    """Expand `*` if it includes a FLOAT column of the only table."""
    source = select.args.get("from_") or select.args.get("from")
    of_table = source.this if source is not None and not select.args.get("joins") else None
    types = tables.get(of_table.name, {}) if isinstance(of_table, exp.Table) else {}
    if not any(name.startswith("FLOAT") for name in types.values()):
        return
    for column in list(select.expressions):
        if isinstance(column, exp.Star) or (
            isinstance(column, exp.Column) and isinstance(column.this, exp.Star)
        ):
            named = [exp.column(name, quoted=True) for name in types]
            at = select.expressions.index(column)
            shown = [*select.expressions[:at], *named, *select.expressions[at + 1 :]]
            select.set("expressions", shown)


def compare_times(tree: exp.Expr, types: Types) -> None:
    """Convert literals to the form of the column they are compared with; a date is its midnight."""
    for left, others in list(_compared(tree)):
        for column, values in ((left, others), *((other, [left]) for other in others)):
            kind = _time_kind(column, types)
            if kind is not None:
                _fit(column, kind, values, types)


def _compared(tree: exp.Expr) -> Iterator[tuple[exp.Expr, list[exp.Expr]]]:
    """Yield each compared expression with those that it is compared with."""
    for node in tree.find_all(*COMPARISONS, exp.Between, exp.In):
        if isinstance(node.parent, exp.Update):
            continue  # an assignment
        if isinstance(node, exp.Between):
            yield node.this, [node.args["low"], node.args["high"]]
        elif isinstance(node, exp.In):
            yield node.this, list(node.expressions)
        else:
            yield node.this, [node.expression]


def _fit(column: exp.Expr, kind: TimeKind, values: list[exp.Expr], types: Types) -> None:
    read = {
        id(value): time_text("TIME" if kind == "TIME" else "DATETIME", value.name)
        for value in values
        if isinstance(value, exp.Literal)
    }
    has_clock = any(text is not None and not text.endswith(MIDNIGHT) for text in read.values())
    is_moment = has_clock or any(_time_kind(value, types) == "DATETIME" for value in values)
    for value in values:
        text = read.get(id(value))
        if text is not None:
            is_day = kind == "DATE" and not is_moment
            shown = text.removesuffix(f" {MIDNIGHT}") if is_day else text
            value.replace(exp.Literal.string(shown))
    if kind == "DATE" and is_moment:
        column.replace(call("mysql_concat", column, exp.Literal.string(f" {MIDNIGHT}")))


def _time_kind(node: exp.Expr, types: Types) -> TimeKind | None:
    kind = types.get(node.name.lower()) if isinstance(node, exp.Column) else None
    return cast("TimeKind", kind) if kind in TIMES else None


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """One of the functions that are registered for SQLite, with copies of the arguments."""
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])
