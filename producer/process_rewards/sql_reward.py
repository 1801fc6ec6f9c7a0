"""The reward function of a text-to-SQL answer: 1 where its rows are the gold's, else 0."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from producer.process_rewards.row_sets import compare_rows
from producer.process_rewards.sql_text import find_sql
from producer.sql_execution import DatabaseFailedError

logger = logging.getLogger(__name__)

DATABASE: Final = "database"
"""Key of `extra_info`: the database's file."""
DATABASES: Final = "databases"
"""Key of `extra_info`: the folder that has `DB_ID/DB_ID.sqlite`."""


def sql_reward_function(
    port: int | None,
    db_id: str,
    question_id: int | str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None,
) -> float:
    """1 if the answer's rows are the gold's, without order and repeats; 0 on any error.

    Executed here, read-only and within limits of time and rows: no service is asked at `port`.
    `extra_info` says where the database is: `database` or `databases`. What is no fault of the
    answer (no such database, a gold that fails) is logged.
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


def _database(db_id: str, extra_info: Mapping[str, Any]) -> Path | None:
    if DATABASE in extra_info:
        return Path(extra_info[DATABASE])
    if DATABASES not in extra_info or not db_id or any(mark in db_id for mark in "/\\\0"):
        return None
    return Path(extra_info[DATABASES]) / db_id / f"{db_id}.sqlite"
