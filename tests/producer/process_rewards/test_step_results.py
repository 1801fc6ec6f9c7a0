"""Steps with their results: what a reward model with enable_EXreward reads."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from producer.process_rewards.step_results import with_results
from producer.sql_execution import DatabaseFailedError

FIRST = "WITH cheap AS (SELECT a FROM t WHERE a < 3), -- two"
SECOND = 'few AS (SELECT a FROM "cheap" WHERE a > 1)'
LAST = "SELECT count(*) FROM few"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?)", [(index,) for index in range(9)])
        connection.commit()
    return path


def test_each_cte_has_its_rows_and_the_query_those_of_the_whole(database: Path) -> None:
    assert with_results(database, [FIRST, SECOND, LAST]) == [
        f"{FIRST}\n-- Result: (0,), (1,), (2,)",
        f"{SECOND}\n-- Result: (2,)",
        f"{LAST}\n-- Result: (1,)",
    ]


def test_of_another_form_only_the_last_step_has_a_result(database: Path) -> None:
    steps = ["SELECT a FROM t", "WHERE a = 4"]
    assert with_results(database, steps) == [steps[0], "WHERE a = 4\n-- Result: (4,)"]


@pytest.mark.parametrize(
    ("sql", "result"),
    [
        ("SELECT a FROM t", "Result: (0,), (1,), (2,), (3,), (4,), ... (9 rows)"),
        ("SELECT a FROM t WHERE a > 9", "Result: no rows"),
        ("SELECT 'a\nb'", r"Result: ('a\nb',)"),
        ("SELECT b FROM t", "Error: no such column: b"),
    ],
)
def test_a_result_is_one_line_of_at_most_five_rows_or_the_error(
    database: Path, sql: str, result: str
) -> None:
    (shown,) = with_results(database, [sql])
    assert shown.startswith(f"{sql}\n-- {result}")
    assert shown.count("\n") == sql.count("\n") + 1


def test_words_without_sql_have_the_databases_error(database: Path) -> None:
    (shown,) = with_results(database, ["I do not know"])
    assert "\n-- Error: " in shown


def test_a_database_that_is_gone_is_no_result(tmp_path: Path) -> None:
    with pytest.raises((DatabaseFailedError, OSError)):
        with_results(tmp_path / "gone.sqlite", [LAST])
