"""What a statement of an agent may cost. A statement that needs more is refused."""

from dataclasses import dataclass

MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one database; the defaults are for a table of some fifty rows.

    `num_steps` stops the same statements on every machine; `time_s` is for what it does not count.
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
