"""Renders docs/tables.md from the tables' definitions: `make docs` writes it."""

import ast
import inspect
import sys
from textwrap import dedent

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from consumers.tables import ROW_TABLES, SCHEMA
from consumers.tables.base import Base
from tests.support.paths import ROOT

DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy's
PAGE = ROOT / "docs" / "tables.md"
HEAD = f"""# Tables

The schema `{SCHEMA}`: every table is a fold of the log, made again by `cua-project rebuild`.
Written by `make docs` from `consumers/tables/`. States and transitions are in `schemas/status.py`.
"""


def render() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_section(table) for table in ROW_TABLES)])


def _section(definition: type[Base]) -> str:
    table = definition.__table__
    assert isinstance(table, sa.Table)
    notes = _notes(definition)
    lines = [f"## {table.name}", "", _sentence(definition), ""]
    if keys := _keys(table):
        lines += [f"Unique: {keys}.", ""]
    lines += ["| column | type | |", "|---|---|---|"]
    for column in table.columns:
        kind = str(column.type.compile(dialect=DIALECT)).lower()
        null = "" if not column.nullable else ", null"
        lines.append(f"| {column.name} | {kind}{null} | {notes.get(column.name, '')} |")
    return "\n".join([*lines, ""])


def _keys(table: sa.Table) -> str:
    unique = [one for one in table.constraints if isinstance(one, sa.UniqueConstraint)]
    names = ["(" + ", ".join(column.name for column in one.columns) + ")" for one in unique]
    return ", ".join(sorted(names))


def _sentence(definition: type[Base]) -> str:
    return " ".join((inspect.getdoc(definition) or "").split())


def _notes(definition: type[Base]) -> dict[str, str]:
    """Column -> the docstring under it, base classes included."""
    notes: dict[str, str] = {}
    for cls in reversed(definition.__mro__):
        if cls.__module__.startswith("consumers.tables"):
            (body,) = ast.parse(dedent(inspect.getsource(cls))).body
            assert isinstance(body, ast.ClassDef)
            for field, note in zip(body.body, body.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(note, ast.Expr):
                    assert isinstance(field.target, ast.Name)
                    text = str(ast.literal_eval(note.value))
                    notes[field.target.id] = " ".join(text.split()).replace("|", "\\|")
    return notes


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    sys.stderr.write(f"wrote {PAGE.relative_to(ROOT)}\n")
