"""Common wrong answers to a question: its gold with one thing forgotten or mistaken.

A question is kept only if each of these returns other rows than the gold, so that a reward computed
from rows can tell them apart.
"""

import sqlite3
from collections.abc import Iterator
from typing import Final

import sqlglot
from sqlglot import exp

SWAPPED: Final[tuple[tuple[type[exp.Expr], type[exp.Expr]], ...]] = (
    (exp.GT, exp.LT),
    (exp.LT, exp.GT),
    (exp.EQ, exp.NEQ),
    (exp.Avg, exp.Sum),
    (exp.Sum, exp.Avg),
    (exp.Max, exp.Min),
    (exp.Min, exp.Max),
)
"""(a comparison or an aggregate, what it is mistaken for) pairs."""
RowSet = frozenset[tuple[object, ...]]


def row_set(connection: sqlite3.Connection, sql: str) -> RowSet:
    """The distinct rows of a trusted query, without their order. Raises sqlite3.Error."""
    return frozenset(connection.execute(sql))


def is_telling(connection: sqlite3.Connection, sql: str) -> bool:
    """Whether the gold returns some value besides NULL, and every common wrong answer other rows.

    Also requires that no tie in the gold's order decides its rows.
    """
    gold = row_set(connection, sql)
    if not gold or all(cell is None for row in gold for cell in row):
        return False
    if any(row_set(connection, tie_break) != gold for tie_break in _tie_breaks(sql)):
        return False
    return all(_rows_or_none(connection, wrong) != gold for wrong in wrong_answers(sql))


def wrong_answers(sql: str) -> Iterator[str]:
    """Yield variants of the gold. Some may fail to execute."""
    tree = sqlglot.parse_one(sql, read="sqlite")
    for table in sorted({table.name for table in tree.find_all(exp.Table)}):
        yield f"SELECT * FROM {table}"
        yield f"SELECT COUNT(*) FROM {table}"
    for at, node in enumerate(tree.walk()):
        for changed in _changed(node):
            copy = tree.copy()
            target = next(one for place, one in enumerate(copy.walk()) if place == at)
            if changed is None:
                target.pop()
            else:
                target.replace(changed)
            yield copy.sql(dialect="sqlite")


def _tie_breaks(sql: str) -> Iterator[str]:
    """The gold with two different tie-breaks; if either returns other rows, a tie decides."""
    for is_descending in (False, True):
        tree = sqlglot.parse_one(sql, read="sqlite")
        order = tree.args.get("order")
        if order is not None:
            column = tree.expressions[0].unalias().copy()
            order.append("expressions", exp.Ordered(this=column, desc=is_descending))
            yield tree.sql(dialect="sqlite")


def _changed(node: exp.Expr) -> Iterator[exp.Expr | None]:
    """Yield what a mistake would put in the node's place; None removes the node."""
    if isinstance(node, exp.Where | exp.Having | exp.Order | exp.Limit):
        yield None
    elif isinstance(node, exp.And):
        yield node.left.copy()
        yield node.right.copy()
    elif isinstance(node, exp.Ordered):
        yield exp.Ordered(this=node.this.copy(), desc=not node.args.get("desc"))
    elif isinstance(node, exp.Not):
        yield node.this.copy()
    elif isinstance(node, exp.Binary | exp.AggFunc) and node.find_ancestor(exp.Join) is None:
        yield from _swapped(node)


def _swapped(node: exp.Binary | exp.AggFunc) -> Iterator[exp.Expr]:
    for right, mistaken in SWAPPED:
        if isinstance(node, right):
            swapped = node.copy()
            yield mistaken(**swapped.args)


def _rows_or_none(connection: sqlite3.Connection, sql: str) -> RowSet | None:
    try:
        return row_set(connection, sql)
    except sqlite3.Error:
        return None
