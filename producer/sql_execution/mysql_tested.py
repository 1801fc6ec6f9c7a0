"""Functions that the embedded database is known to evaluate like MySQL; all others are refused.

`TESTED` lists the functions in tests/producer/agents/dbbench/statements.sql, which
test_same_on_mysql.py runs on both. `python -m tests.support.tested_functions` regenerates it.
"""

from typing import Final

from sqlglot import expressions as exp

TESTED: Final = frozenset(
    {
        "Abs",
        "Avg",
        "CAST AS CHAR",
        "Case",
        "Ceil",
        "Coalesce",
        "Concat",
        "ConcatWs",
        "Count",
        "DateDiff",
        "Exp",
        "Floor",
        "Greatest",
        "If",
        "Lag",
        "Least",
        "Left",
        "Length",
        "Ln",
        "Log",
        "Lower",
        "Max",
        "Min",
        "Nullif",
        "Pow",
        "Rank",
        "RegexpLike",
        "Replace",
        "Right",
        "Round",
        "RowNumber",
        "Sign",
        "Sqrt",
        "StrPosition",
        "Substring",
        "Sum",
        "Trim",
        "Upper",
    }
)
"""sqlglot's class of the function, the name of a function without a class, or `CAST AS TYPE`."""
CONNECTIVES: Final = (exp.And, exp.Or, exp.Xor)
"""Operators that sqlglot counts as functions."""


def function_of(node: exp.Expr) -> str | None:
    """The node's function in the terms of `TESTED`; None if the node is not a function."""
    if isinstance(node, exp.Cast):
        return f"CAST AS {node.to.this.name}"
    if isinstance(node, exp.Anonymous):
        return node.name.upper()
    if isinstance(node, exp.Glob):
        return "GLOB"
    is_function = isinstance(node, exp.Func) and not isinstance(node, CONNECTIVES)
    return type(node).__name__ if is_function else None


def untested(tree: exp.Expr) -> str | None:
    """The first untested function in a statement, as MySQL spells it; None if there is none."""
    for node in tree.walk():
        name = function_of(node)
        if name is not None and name not in TESTED:
            if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous | exp.Cast):
                return str(node.sql_names()[0])
            return name
    return None
