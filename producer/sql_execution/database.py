"""The Database interface: where an agent's statements are executed, and what they may cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

MEGABYTE = 1024 * 1024

CellT = TypeVar("CellT")
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


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one database; the defaults are for a table of some fifty rows.

    A statement that needs more is refused. `num_steps` stops the same statements on every machine;
    `time_s` is for what it does not count.
    """

    time_s: float = 5.0
    """CPU time of a statement, so that a busy machine stops none that an idle one lets end."""
    num_steps: int | None = 20_000_000
    """Instructions of SQLite's virtual machine for a statement (0.2 s); None: only time counts."""
    num_rows: int = 1_000
    """Rows fetched; further ones are left out, and `Rows.is_truncated` is true."""
    result_characters: int = 200_000
    """Of all values fetched together; then as `num_rows`."""
    sql_characters: int = 20_000
    """Of a statement."""
    value_bytes: int = 100_000
    """Of one value or one row."""
    database_bytes: int = 16 * MEGABYTE
    """Of a throw-away database."""
    memory_bytes: int = 128 * MEGABYTE
    """That SQLite allocates, the throw-away database included."""


FILE_LIMITS = Limits(
    time_s=30.0,
    num_steps=None,
    num_rows=100_000,
    result_characters=20_000_000,
    value_bytes=1_000_000,
    memory_bytes=512 * MEGABYTE,
)
"""For a user's database of any size, opened read-only."""


def within_limits(
    rows: Iterable[Sequence[CellT]], limits: Limits
) -> tuple[list[Sequence[CellT]], bool]:
    """The rows that the limits allow, and whether there are more."""
    kept: list[Sequence[CellT]] = []
    characters = 0
    for cells in rows:
        characters += sum(len(cell) if isinstance(cell, str) else 8 for cell in cells)
        if len(kept) >= limits.num_rows or characters > limits.result_characters:
            return kept, True
        kept.append(cells)
    return kept, False
