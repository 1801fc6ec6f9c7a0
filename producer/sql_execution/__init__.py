"""Executes SQL that an agent wrote, in limited databases that it cannot escape.

SQLite runs in child processes (`child`), so that a statement that hangs, crashes or exhausts memory
fails the agent and never the run. Imports no torch.
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
