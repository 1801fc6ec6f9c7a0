"""The Database interface for executing an agent's statements, and the limits of their cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

MEGABYTE = 1024 * 1024

CellT = TypeVar("CellT")
Cell = int | float | str | None
"""A value in a row. Bytes are represented as an SQL literal, X'0A'."""


class SqlRefusedError(Exception):
    """The statement failed or exceeded a limit. The agent is at fault and gets the message.

    The database is unchanged.
    """


class DatabaseFailedError(Exception):
    """The database failed through no fault of the agent."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The result of a statement."""

    columns: tuple[str, ...]
    """Column names; empty for a statement that returns no rows."""
    rows: tuple[tuple[Cell, ...], ...]
    is_truncated: bool = False
    """Whether rows were left out because of the limits."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A trusted statement that builds the database, executed before the agent's limits apply."""

    sql: str
    rows: tuple[tuple[Cell, ...], ...] | None = None
    """The statement is executed once per row, with the row's values in place of `?`; once if
    None."""


class Database(Protocol):
    """One session's database. Used by one thread at a time; many may be in use concurrently."""

    def execute(self, sql: str) -> Rows:
        """Execute one statement of the agent. Raises SqlRefusedError, DatabaseFailedError."""
        ...

    def table_rows(self, table: str, columns: Sequence[str]) -> tuple[tuple[Cell, ...], ...]:
        """Every row of a table, in no particular order. Raises DatabaseFailedError."""
        ...

    def close(self) -> None:
        """Discard the database. Idempotent; raises nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one database. The defaults suit a table of about fifty rows.

    A statement that exceeds them is refused. `num_steps` stops the same statements on every
    machine; `time_s` covers work that it does not count.
    """

    time_s: float = 5.0
    """CPU time per statement. Unlike wall-clock time, it does not stop more statements on a busy
    machine."""
    num_steps: int | None = 20_000_000
    """Instructions of SQLite's virtual machine per statement (about 0.2 s); None limits only the
    time."""
    num_rows: int = 1_000
    """Maximum rows fetched. Further rows are dropped, and `Rows.is_truncated` is set."""
    result_characters: int = 200_000
    """Maximum characters of all fetched values together; beyond it, rows are dropped as for
    `num_rows`."""
    sql_characters: int = 20_000
    """Maximum characters of a statement."""
    value_bytes: int = 100_000
    """Maximum size of one value or one row."""
    database_bytes: int = 16 * MEGABYTE
    """Maximum size of a throw-away database."""
    memory_bytes: int = 128 * MEGABYTE
    """Maximum memory that SQLite allocates, including the throw-away database."""


FILE_LIMITS = Limits(
    time_s=30.0,
    num_steps=None,
    num_rows=100_000,
    result_characters=20_000_000,
    value_bytes=1_000_000,
    memory_bytes=512 * MEGABYTE,
)
"""Limits for a user's database of any size, opened read-only."""


def within_limits(
    rows: Iterable[Sequence[CellT]], limits: Limits
) -> tuple[list[Sequence[CellT]], bool]:
    """The rows within the limits, and whether there are more."""
    kept: list[Sequence[CellT]] = []
    characters = 0
    for cells in rows:
        characters += sum(len(cell) if isinstance(cell, str) else 8 for cell in cells)
        if len(kept) >= limits.num_rows or characters > limits.result_characters:
            return kept, True
        kept.append(cells)
    return kept, False
