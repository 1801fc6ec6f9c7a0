"""Compares the rows of a completion's SQL with the gold's, ignoring order and repeats.

As in BIRD, values must be equal (1 equals 1.0) and column names are ignored. The reward of an
answer is 1 if its rows are the gold's, else 0.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Any, Final, Literal

from producer.process_rewards.sql_text import find_sql
from producer.sql_execution import (
    Cell,
    Database,
    DatabaseFailedError,
    Limits,
    SqlRefusedError,
    open_read_only,
)
from producer.sql_execution.database import FILE_LIMITS, MEGABYTE
from producer.sql_execution.sqlite import FileState, file_state

logger = logging.getLogger(__name__)

Outcome = Literal["correct", "incorrect", "error", "no_sql", "unknown"]
RowSet = frozenset[tuple[Cell, ...]]
SMALL_FILE_BYTES: Final = MEGABYTE
"""Databases up to this size are queried within the instruction limit of a throw-away database."""
NUM_STEPS: Final = 1_000_000_000
"""Limit for larger databases, in instructions of SQLite's virtual machine: about ten seconds. It
stops the same queries on every machine. BIRD's limit of 30 s still applies to work that
instructions do not count."""
DATABASE: Final = "database"
"""Key of `extra_info` for the database's file."""
DATABASES: Final = "databases"
"""Key of `extra_info` for the folder that contains `DB_ID/DB_ID.sqlite`."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing a completion's SQL with the gold."""

    outcome: Outcome
    """See `schemas.completion.CompletionExecuted`."""
    num_rows: int | None = None
    """Number of rows in the result; None if there was no result."""
    execution_time_s: float | None = None
    """Execution time of the completion's SQL; None if it was not executed."""
    error_message: str | None = None
    """The database's error for the completion's SQL or for the gold; None if there was none."""

    @property
    def reward(self) -> float:
        """1 if the rows are the gold's, else 0."""
        return float(self.outcome == "correct")


class GoldFailedError(Exception):
    """The gold cannot be executed, which is a mistake of the data set."""


def compare_rows(database: Path, sql: str | None, gold: str) -> Comparison:
    """Execute both, read-only and within limits.

    Raises DatabaseFailedError, for which the agent is not to blame.
    """
    if sql is None:
        return Comparison("no_sql")
    state = _state(database)
    try:
        expected = _gold_rows(database, state, gold)
    except GoldFailedError as error:
        return Comparison("unknown", error_message=str(error))
    opened = open_read_only(database, limits_of(database))
    begun_s = monotonic()
    try:
        rows = _rows(opened, sql)
        found = Comparison(
            "correct" if frozenset(rows) == expected else "incorrect",
            num_rows=len(rows),
            execution_time_s=monotonic() - begun_s,
        )
    except SqlRefusedError as error:
        found = Comparison(
            "error", execution_time_s=monotonic() - begun_s, error_message=str(error)
        )
    finally:
        opened.close()
    _refuse_change(database, state)
    return found


def sql_reward_function(
    port: int | None,
    db_id: str,
    question_id: int | str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None,
) -> float:
    """1 if the answer's rows are the gold's, ignoring order and repeats; 0 on any error.

    SQL is executed here, read-only and within limits of time and rows; no service at `port` is
    called. `extra_info` locates the database with `database` or `databases`. Problems that are not
    the answer's fault (a missing database, a failing gold) are logged.
    """
    del port
    span = find_sql(solution_str)
    if span is None:
        return 0.0
    path = _database(db_id, extra_info or {})
    if path is None:
        logger.warning(
            "question %s: extra_info names no database %r; give %r or %r",
            question_id,
            db_id,
            DATABASE,
            DATABASES,
        )
        return 0.0
    try:
        found = compare_rows(path, solution_str[span.start : span.end], ground_truth)
    except (DatabaseFailedError, OSError) as error:
        logger.warning("question %s: %s", question_id, error)
        return 0.0
    if found.outcome == "unknown":
        logger.warning("question %s: %s: %s", question_id, path, found.error_message)
    return found.reward


def gold_rows(database: Path, gold: str) -> RowSet:
    """The gold's rows. Raises GoldFailedError, DatabaseFailedError."""
    return _gold_rows(database, _state(database), gold)


def limits_of(database: Path) -> Limits:
    """Limits for queries on a database of this size. Raises OSError."""
    small = Limits()
    if database.stat().st_size <= SMALL_FILE_BYTES:
        return replace(FILE_LIMITS, num_steps=small.num_steps, memory_bytes=small.memory_bytes)
    return replace(FILE_LIMITS, num_steps=NUM_STEPS)


@lru_cache(maxsize=512)
def _gold_rows(database: Path, state: FileState, gold: str) -> RowSet:
    opened = open_read_only(database, limits_of(database))
    try:
        return frozenset(_rows(opened, gold))
    except SqlRefusedError as error:
        message = f"the gold cannot be executed: {error}"
        raise GoldFailedError(message) from error
    finally:
        opened.close()
        _refuse_change(database, state)


def _state(database: Path) -> FileState:
    try:
        return file_state(database)
    except OSError as error:
        message = f"{database}: {error.strerror}"
        raise DatabaseFailedError(message) from error


def _refuse_change(database: Path, state: FileState) -> None:
    """Raise DatabaseFailedError if the file has changed: the rows would mix two states of it."""
    if _state(database) != state:
        message = f"{database}: the database was changed while it was read"
        raise DatabaseFailedError(message)


def _rows(database: Database, sql: str) -> tuple[tuple[Cell, ...], ...]:
    rows = database.execute(sql)
    if rows.is_truncated:
        message = f"the query has more than {len(rows.rows):,} rows, or too much text"
        raise SqlRefusedError(message)
    return rows.rows


def _database(db_id: str, extra_info: Mapping[str, Any]) -> Path | None:
    if DATABASE in extra_info:
        return Path(extra_info[DATABASE])
    if DATABASES not in extra_info or not db_id or any(mark in db_id for mark in "/\\\0"):
        return None
    return Path(extra_info[DATABASES]) / db_id / f"{db_id}.sqlite"
