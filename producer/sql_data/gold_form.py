"""The form of a gold: its SQL without the values in it.

Two golds of one form differ in numbers and texts alone: a policy trained on one only has to copy
other values. Generators give every form to one split, so that none is in both.
"""

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from producer.errors import UsageError
from schemas.distribution import install_command

if TYPE_CHECKING:
    from sqlglot import exp

SALT: Final = 1138
"""The first that leaves every table of DB Bench's generator a gold for each of the 22 skills."""
TABLE: Final = "this_table"
"""Stands for the name of an only table."""
Dialect = Literal["mysql", "sqlite"]


@lru_cache(maxsize=65_536)
def gold_form(sql: str, dialect: Dialect, table: str | None = None) -> str:
    """The statement with `?` for each number and text, names in lower case. UsageError.

    `table`: the name of its only table, which is left out too, as one more value that a policy
    copies. The form of a statement that cannot be read is its text in lower case.
    """
    tree = _read(sql, dialect)
    if tree is None:
        return " ".join(sql.lower().split())
    from sqlglot import exp

    own = None if table is None else table.lower()

    def without_values(node: exp.Expr) -> exp.Expr:
        value = node.this if isinstance(node, exp.Neg) else node
        if isinstance(value, exp.Literal):
            return exp.Placeholder()
        if isinstance(node, exp.Identifier):
            name = node.name.lower()
            return exp.to_identifier(TABLE if name == own else name)
        return node

    return tree.transform(without_values).sql(dialect=dialect)


def gold_names(sql: str, dialect: Dialect) -> tuple[str, ...]:
    """Tables and columns that the statement names, sorted. UsageError.

    None of a statement that cannot be read.
    """
    tree = _read(sql, dialect)
    if tree is None:
        return ()
    from sqlglot import exp

    found = tree.find_all(exp.Table, exp.Column)
    return tuple(sorted({item.name.lower() for item in found if item.name}))


def is_held_out_form(form: str, one_in: int) -> bool:
    """Whether a form that both splits could have is held out, as one in `one_in` is."""
    return hashlib.sha256(f"{SALT} {form}".encode()).digest()[0] % one_in == 0


def _read(sql: str, dialect: Dialect) -> "exp.Expr | None":
    try:
        import sqlglot
    except ImportError as error:
        message = f"comparing SQL needs sqlglot; run {install_command('sql')}"
        raise UsageError(message) from error
    try:
        return sqlglot.parse_one(sql, read=dialect)
    except Exception:  # noqa: BLE001  # a parser's bug on a data set's text
        return None
