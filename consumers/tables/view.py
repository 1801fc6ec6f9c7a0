"""What a view and a function of SQL consist of, before any database has them."""

from typing import NamedTuple


class Column(NamedTuple):
    """One column of a view."""

    name: str
    type: str
    comment: str


class View(NamedTuple):
    """One view."""

    name: str
    comment: str
    columns: tuple[Column, ...]
    query: str
    """With `{schema}` for the schema of its tables and functions."""


class Function(NamedTuple):
    """One function of SQL."""

    name: str
    arguments: str
    returns: str
    attributes: str
    comment: str
    body: str

    @property
    def signature(self) -> str:
        """Its name for DROP and COMMENT."""
        return f"{self.name}({self.arguments})"
