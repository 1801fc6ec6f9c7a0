"""Databases of SQLite: limits, sessions that outlive their process, threads, read-only files."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from producer.agents.text_to_sql.data.database_schema import UnreadableDatabaseError, read_tables
from producer.sql_execution import (
    DatabaseFailedError,
    Limits,
    Rows,
    Setup,
    SqlRefusedError,
    child,
    open_read_only,
    open_throw_away,
)
from producer.sql_execution.database import FILE_LIMITS
from tests.producer.sql_execution.hostile import TAKES_MINUTES

TABLE = Setup("CREATE TABLE t (id INT, name TEXT)")
TWO = Setup("INSERT INTO t VALUES (?, ?)", ((1, "a"), (2, None)))


def test_rows_come_with_their_columns_and_changes_without_rows() -> None:
    database = open_throw_away([TABLE, TWO])
    assert database.execute("SELECT id AS n, name FROM t ORDER BY id;") == Rows(
        ("n", "name"), ((1, "a"), (2, None))
    )
    assert database.execute("UPDATE t SET id = id + 1") == Rows((), ())
    assert sorted(database.table_rows("t", ["id"])) == [(2,), (3,)]
    database.close()


def test_bytes_are_shown_as_sql_writes_them() -> None:
    database = open_throw_away([])
    assert database.execute("SELECT x'00ff'").rows == (("X'00FF'",),)
    database.close()


def test_what_a_stopped_statement_had_done_is_undone() -> None:
    database = open_throw_away([TABLE, TWO], Limits(num_steps=200_000))
    forever = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c)"
    with pytest.raises(SqlRefusedError, match="too many steps"):
        database.execute(f"INSERT INTO t {forever} SELECT x, '' FROM c")
    assert len(database.table_rows("t", ["id"])) == 2
    database.close()


def test_a_database_is_built_again_after_its_process_was_stopped() -> None:
    database = open_throw_away([TABLE, TWO], Limits(time_s=0.3))
    database.execute("INSERT INTO t VALUES (3, 'c')")
    with pytest.raises(SqlRefusedError, match=r"longer than 0\.3 s"):
        database.execute(TAKES_MINUTES)
    database.execute("DELETE FROM t WHERE id = 1")
    assert sorted(database.table_rows("t", ["id"])) == [(2,), (3,)]
    database.close()


@pytest.mark.parametrize(
    ("limits", "num_rows"),
    [(Limits(num_rows=10), 10), (Limits(result_characters=100), 12)],
    ids=["rows", "characters"],
)
def test_rows_beyond_the_limits_are_left_out_and_it_is_said(limits: Limits, num_rows: int) -> None:
    setup = (Setup("CREATE TABLE t (id INT)"), Setup("INSERT INTO t VALUES (?)", ((1,),) * 50))
    database = open_throw_away(setup, limits)
    rows = database.execute("SELECT id FROM t")
    assert (len(rows.rows), rows.is_truncated) == (num_rows, True)
    assert not database.execute("SELECT id FROM t LIMIT 5").is_truncated
    database.close()


def test_a_database_larger_than_its_limit_is_refused_and_usable() -> None:
    database = open_throw_away([TABLE], Limits(database_bytes=150_000))
    fill = "INSERT INTO t SELECT 1, printf('%090000d', 0)"
    database.execute(fill)
    with pytest.raises(SqlRefusedError, match="full"):
        database.execute(fill)
    assert database.execute("SELECT count(*) FROM t").rows == ((1,),)
    database.close()


def test_sessions_on_many_threads_never_meet() -> None:
    def session(number: int) -> int:
        database = open_throw_away([TABLE])
        for value in range(number):
            database.execute(f"INSERT INTO t VALUES ({value}, 'x')")
        (rows,) = database.execute("SELECT count(*) FROM t").rows
        database.close()
        assert isinstance(rows[0], int)
        return rows[0]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(session, range(24))) == list(range(24))


def test_a_closed_database_refuses_and_closes_again() -> None:
    database = open_throw_away([TABLE])
    database.close()
    database.close()
    with pytest.raises(DatabaseFailedError, match="closed"):
        database.execute("SELECT 1")


def test_a_broken_setup_is_no_fault_of_the_agent() -> None:
    with pytest.raises(DatabaseFailedError, match="near"):
        open_throw_away([Setup("CREATE TABEL t")])


def made(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def test_a_file_is_read_and_never_changed(tmp_path: Path) -> None:
    path = made(tmp_path / "a ?#%20ü.sqlite", "CREATE TABLE t (x)", "INSERT INTO t VALUES (1), (2)")
    content = path.read_bytes()
    database = open_read_only(path)
    assert database.execute("SELECT x FROM t ORDER BY x").rows == ((1,), (2,))
    for sql in ("INSERT INTO t VALUES (3)", "DELETE FROM t", "UPDATE t SET x = 0"):
        with pytest.raises(SqlRefusedError, match="read-only"):
            database.execute(sql)
    database.close()
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_may_contain_triggers_and_views_that_are_read(tmp_path: Path) -> None:
    path = made(tmp_path / "v.sqlite", "CREATE TABLE t (x)", "CREATE VIEW v AS SELECT 1 AS x")
    database = open_read_only(path)
    assert database.execute("SELECT x FROM v").rows == ((1,),)
    database.close()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "wrong.sqlite"
    path.write_text("this is no database" * 100)
    with pytest.raises(DatabaseFailedError, match=r"wrong\.sqlite.*not a database"):
        open_read_only(path)
    with pytest.raises(DatabaseFailedError, match=r"none\.sqlite: there is no such database"):
        open_read_only(tmp_path / "none.sqlite")


@pytest.mark.parametrize(
    ("name", "is_of_the_file"),
    [
        ("SQLITE_CORRUPT_VTAB", True),
        ("SQLITE_IOERR_READ", True),
        ("SQLITE_NOTADB", True),
        # Sorting met the limit of memory, which the statement did.
        ("SQLITE_IOERR_NOMEM", False),
        ("SQLITE_ERROR", False),
    ],
)
def test_what_sqlite_names_tells_the_files_fault_from_the_statements(
    name: str, is_of_the_file: bool
) -> None:
    error = sqlite3.OperationalError("")
    error.sqlite_errorname = name
    assert child._is_of_the_file(error) is is_of_the_file


def test_a_file_that_is_damaged_is_no_fault_of_the_statement_that_finds_it(tmp_path: Path) -> None:
    """Its first page is whole; the table's pages are not."""
    path = made(
        tmp_path / "damaged.sqlite",
        "CREATE TABLE t (x)",
        "INSERT INTO t WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 5000)"
        " SELECT printf('%0100d', x) FROM c",
    )
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xaa" * (len(content) - 8192))
    database = open_read_only(path)
    assert database.execute("SELECT 1").rows == ((1,),)
    with pytest.raises(DatabaseFailedError, match=r"damaged\.sqlite cannot be read: .*malformed"):
        database.execute("SELECT count(DISTINCT x) FROM t")
    with pytest.raises(SqlRefusedError, match="no such column"):
        database.execute("SELECT y FROM t")
    database.close()


def test_a_file_with_changes_beside_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wal.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (x)")
    with pytest.raises(DatabaseFailedError, match="has changes in"):
        open_read_only(path)
    with pytest.raises(UnreadableDatabaseError, match="has changes in"):
        read_tables(path)
    connection.close()
    open_read_only(path).close()


def test_a_file_with_an_unfinished_transaction_beside_it_is_refused(tmp_path: Path) -> None:
    """A writer that was killed: the file has part of its changes, the journal undoes them."""
    path = made(tmp_path / "half.sqlite", "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)")
    writer = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('PRAGMA cache_size = 1'); c.execute('BEGIN');"
        "c.executemany('INSERT INTO t VALUES (?)', [('x' * 3000,)] * 100); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", writer, str(path)], check=True)
    with pytest.raises(DatabaseFailedError, match=r"half\.sqlite: .*half\.sqlite-journal"):
        open_read_only(path)
    with pytest.raises(UnreadableDatabaseError, match=r"half\.sqlite-journal"):
        read_tables(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT x FROM t").fetchall() == [(1,)]
    connection.close()
    open_read_only(path).close()


@pytest.mark.parametrize("mode", ["DELETE", "TRUNCATE", "PERSIST"])
def test_a_journal_that_is_not_in_force_is_no_hindrance(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "kept.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    for statement in ("CREATE TABLE t (x)", "INSERT INTO t VALUES (1)", "DELETE FROM t"):
        connection.execute(statement)
        connection.commit()
    database = open_read_only(path)
    assert database.execute("SELECT count(*) FROM t").rows == ((0,),)
    database.close()
    connection.close()


def test_a_file_may_be_sorted_without_any_file_beside_it(tmp_path: Path) -> None:
    path = made(
        tmp_path / "big.sqlite",
        "CREATE TABLE t (x)",
        "INSERT INTO t WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 200000)"
        " SELECT hex(x) || printf('%0100d', x) FROM c",
    )
    database = open_read_only(path, FILE_LIMITS)
    rows = database.execute("SELECT DISTINCT x FROM t ORDER BY x DESC LIMIT 1 OFFSET 199999")
    assert rows.rows == (("31" + "0" * 99 + "1",),)
    database.close()
    assert list(tmp_path.iterdir()) == [path]
