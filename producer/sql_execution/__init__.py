"""Execution of SQL that an agent wrote: databases with limits and no way out of them.

SQLite runs in child processes (`child`), so that a statement that hangs, crashes or takes memory
is the agent's failure and never the run's. Imports no torch.
"""

from producer.sql_execution.database import (
    Cell,
    Database,
    DatabaseFailedError,
    Limits,
    Rows,
    Setup,
    SqlRefusedError,
)
from producer.sql_execution.sqlite import SqliteDatabase, open_read_only, open_throw_away

__all__ = [
    "Cell",
    "Database",
    "DatabaseFailedError",
    "Limits",
    "Rows",
    "Setup",
    "SqlRefusedError",
    "SqliteDatabase",
    "open_read_only",
    "open_throw_away",
]
