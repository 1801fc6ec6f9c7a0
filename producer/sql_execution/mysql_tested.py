"""Functions of MySQL that the embedded database is known to answer alike; every other is refused.

`TESTED` is what the statements of tests/producer/agents/dbbench/statements.sql use, which run
on both in test_same_on_mysql.py. `python -m tests.support.tested_functions` writes it again.
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
"""sqlglot's class of the function, a name that it has no class for, or `CAST AS TYPE`."""
CONNECTIVES: Final = (exp.And, exp.Or, exp.Xor)
"""Operators that sqlglot counts among the functions."""


def function_of(node: exp.Expr) -> str | None:
    """What `TESTED` calls the node's function; None: it is none."""
    if isinstance(node, exp.Cast):
        return f"CAST AS {node.to.this.name}"
    if isinstance(node, exp.Anonymous):
        return node.name.upper()
    if isinstance(node, exp.Glob):
        return "GLOB"
    is_function = isinstance(node, exp.Func) and not isinstance(node, CONNECTIVES)
    return type(node).__name__ if is_function else None


def untested(tree: exp.Expr) -> str | None:
    """The first function of a statement that is not tested, as MySQL spells it; None: none."""
    for node in tree.walk():
        name = function_of(node)
        if name is not None and name not in TESTED:
            if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous | exp.Cast):
                return str(node.sql_names()[0])
            return name
    return None
