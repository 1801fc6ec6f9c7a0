"""Renders docs/tables.md from the tables' definitions: `make docs` writes it."""

import sys

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from consumers.tables import ROW_TABLES, SCHEMA
from consumers.tables.comments import commented_metadata
from consumers.tables.view import View
from consumers.tables.views import DECODERS, VIEWS
from tests.support.paths import ROOT

DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy's
PAGE = ROOT / "docs" / "tables.md"
HEAD = f"""# Tables

The schema `{SCHEMA}`: every table is a fold of the log, made again by `cua-project rebuild`.
Written by `make docs` from `consumers/tables/`. States and transitions are in `schemas/status.py`.
PostgreSQL has the same sentences as comments: `\\d+ rollout` in psql shows them.
"""
VIEWS_HEAD = f"""# Views

For people and notebooks, in the schema `{SCHEMA}` too. They read the tables beside them, also after
a rebuild; the functions below decode what the tables keep as text.
"""


def render() -> str:
    """The whole page."""
    tables = [
        commented_metadata().tables[f"{SCHEMA}.{row_table.__tablename__}"]
        for row_table in ROW_TABLES
    ]
    functions = [f"- `{each.signature}`: {each.comment}" for each in DECODERS]
    return "\n".join([HEAD, *map(_section, tables), VIEWS_HEAD, *map(_view, VIEWS), *functions, ""])


def _view(view: View) -> str:
    lines = [f"## {view.name}", "", view.comment, "", "| column | type | |", "|---|---|---|"]
    lines += [f"| {column.name} | {column.type} | {column.comment} |" for column in view.columns]
    return "\n".join([*lines, ""])


def _section(table: sa.Table) -> str:
    lines = [f"## {table.name}", "", str(table.comment), ""]
    if keys := _keys(table):
        lines += [f"Unique: {keys}.", ""]
    lines += ["| column | type | |", "|---|---|---|"]
    for column in table.columns:
        kind = str(column.type.compile(dialect=DIALECT)).lower()
        null = "" if not column.nullable else ", null"
        note = str(column.comment).replace("|", "\\|")
        lines.append(f"| {column.name} | {kind}{null} | {note} |")
    return "\n".join([*lines, ""])


def _keys(table: sa.Table) -> str:
    unique = [
        constraint
        for constraint in table.constraints
        if isinstance(constraint, sa.UniqueConstraint)
    ]
    names = ["(" + ", ".join(column.name for column in item.columns) + ")" for item in unique]
    return ", ".join(sorted(names))


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    sys.stderr.write(f"wrote {PAGE.relative_to(ROOT)}\n")
