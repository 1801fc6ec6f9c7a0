"""The Database interface: where an agent's statements are executed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Cell = int | float | str | None
"""A value of a row. Bytes are shown as SQL writes them, X'0A'."""


class SqlRefusedError(Exception):
    """The statement failed or broke a limit: the agent's fault, and the message is for the agent.

    The database is as it was before the statement.
    """


class DatabaseFailedError(Exception):
    """The database does not work, through no fault of the agent."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a statement returned."""

    columns: tuple[str, ...]
    """Names; empty for a statement that returns no rows."""
    rows: tuple[tuple[Cell, ...], ...]
    num_affected: int
    """Rows inserted, updated or deleted."""
    is_truncated: bool = False
    """Whether there were more rows than the limits allow."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A trusted statement that builds the database, before any limit of the agent's applies."""

    sql: str
    rows: tuple[tuple[Cell, ...], ...] | None = None
    """Executed once for each, with its values in place of `?`; None: executed once."""


class Database(Protocol):
    """One session's database. Used by one thread at a time; any number of them at once."""

    def execute(self, sql: str) -> Rows:
        """Execute one statement of the agent. SqlRefusedError, DatabaseFailedError."""
        ...

    def table_rows(self, table: str, columns: Sequence[str]) -> tuple[tuple[Cell, ...], ...]:
        """Every row of a table, in no particular order. DatabaseFailedError."""
        ...

    def close(self) -> None:
        """Throw the database away. Idempotent; raises nothing."""
        ...
