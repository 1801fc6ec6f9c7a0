"""The form of a gold: its SQL without the values in it.

Two golds of one form differ only in numbers and texts, so a policy trained on one only has to copy
other values. Generators assign every form to one split, so that no form is in both.
"""

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from producer.errors import UsageError
from schemas.distribution import install_command

if TYPE_CHECKING:
    from sqlglot import exp

SALT: Final = 1138
"""The first salt with which every table of DB Bench's generator has a gold for each of the 22
skills."""
TABLE: Final = "this_table"
"""Stands for the name of the only table."""
Dialect = Literal["mysql", "sqlite"]


@lru_cache(maxsize=65_536)
def gold_form(sql: str, dialect: Dialect, table: str | None = None) -> str:
    """The statement with `?` for each number and text, and names in lower case.

    `table` is the name of its only table. That name is replaced too, because it is one more value
    that a policy copies. The form of a statement that cannot be parsed is its text in lower case.
    Raises UsageError.
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
    """Names of the tables and columns in the statement, sorted. Raises UsageError.

    Empty for a statement that cannot be parsed.
    """
    tree = _read(sql, dialect)
    if tree is None:
        return ()
    from sqlglot import exp

    found = tree.find_all(exp.Table, exp.Column)
    return tuple(sorted({item.name.lower() for item in found if item.name}))


def is_held_out_form(form: str, one_in: int) -> bool:
    """Whether a form is held out, as about one in `one_in` forms is."""
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
