"""Facts of a gold's syntax tree: whether it reads or changes, and whether it orders its rows."""

import logging
from functools import lru_cache
from typing import Literal

from producer.errors import UsageError
from schemas.distribution import install_command

try:
    import sqlglot
    from sqlglot import expressions as exp
except ImportError as error:
    MESSAGE = f"DB Bench reads SQL with sqlglot, which is missing; run {install_command('sql')}"
    raise UsageError(MESSAGE) from error

# It writes about dialects on its logger; what we cannot read, we refuse ourselves.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

Kind = Literal["select", "insert", "update", "delete"]


class GoldUnreadableError(ValueError):
    """The SQL cannot be read, or is no SELECT, INSERT, UPDATE or DELETE."""


@lru_cache(maxsize=4096)
def parse(sql: str) -> exp.Expr:
    """The syntax tree of one MySQL statement; not to be changed. GoldUnreadableError."""
    try:
        trees = [tree for tree in sqlglot.parse(sql, read="mysql") if tree is not None]
    except Exception as error:  # a parser's bug on a data set's text is the text's mistake
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
    """What the statement does. GoldUnreadableError."""
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
    """Whether its rows have an order: an ORDER BY of the whole, not of a subquery.

    A text that cannot be read has one if it contains ORDER BY.
    """
    try:
        return parse(sql).args.get("order") is not None
    except GoldUnreadableError:
        return "order by" in " ".join(sql.lower().split())
