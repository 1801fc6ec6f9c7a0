"""What every table and column means: the docstrings of the table classes, as comments in SQL.

Read from the source when a schema is made or compared, which is seldom; nothing else needs them.
"""

import ast
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import sqlalchemy as sa

from consumers.tables import OPS_TABLES, ROW_TABLES, STATE_TABLES, Base


@lru_cache(maxsize=256)
def _classes(module: str) -> dict[str, ast.ClassDef]:
    source = import_module(module).__file__
    assert source is not None  # noqa: S101  # a module of ours is a file
    tree = ast.parse(Path(source).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def attribute_docs(cls: type, package: str) -> dict[str, str]:
    """Field -> the docstring under it on one line, base classes of the package included."""
    docs: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        if each.__module__.split(".")[0] != package:
            continue
        body = _classes(each.__module__)[each.__name__].body
        for field, doc in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(doc, ast.Expr):
                assert isinstance(field.target, ast.Name)  # noqa: S101  # of a class's field
                docs[field.target.id] = one_line(str(ast.literal_eval(doc.value)))
    return docs


def one_line(text: str | None) -> str:
    """A docstring without its line breaks."""
    return " ".join((text or "").split())


@lru_cache(maxsize=1)
def commented_metadata() -> sa.MetaData:
    """The definition of all tables, with a comment on every table and column."""
    for definition in (*ROW_TABLES, *STATE_TABLES, *OPS_TABLES):
        table = definition.__table__
        assert isinstance(table, sa.Table)  # noqa: S101  # every class of ours maps a table
        docs = attribute_docs(definition, "consumers")
        table.comment = one_line(definition.__doc__)
        for column in table.columns:
            column.comment = docs.get(column.name)
    return Base.metadata
