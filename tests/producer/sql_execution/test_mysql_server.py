"""Sessions on a MySQL or MariaDB server: rights, limits, debris."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from time import monotonic

import pytest

from producer.sql_execution import DatabaseFailedError, Limits, Setup, SqlRefusedError
from producer.sql_execution.mysql_admin import (
    Administrator,
    ServerUrl,
    administrator,
    parse_server_url,
)
from producer.sql_execution.mysql_session import MysqlDatabase
from tests.support.mariadb import MariaDbServer
from tests.support.paths import ROOT

SETUP = (
    Setup("CREATE TABLE t (id INT, name TEXT)"),
    Setup("INSERT INTO t VALUES (%s, %s)", ((1, "100%"), (2, None))),
)
LIMITS = Limits(time_s=1.0, num_rows=50)


@pytest.fixture
def admin(mariadb: MariaDbServer) -> Administrator:
    return administrator(parse_server_url(mariadb.url))


@pytest.fixture
def database(admin: Administrator) -> Iterator[MysqlDatabase]:
    made = MysqlDatabase(admin, SETUP, LIMITS)
    yield made
    made.close()
    made.close()


def databases(admin: Administrator) -> set[str]:
    return {row[0] for row in admin.run("mysql", "SHOW DATABASES") if row[0].startswith("cua_")}


def users(admin: Administrator) -> set[str]:
    return {row[0] for row in admin.run("mysql", "SELECT User FROM user WHERE User LIKE 'cua%'")}


def test_rows_come_as_sqlite_gives_them(database: MysqlDatabase) -> None:
    rows = database.execute("SELECT id, name, id / 3, SUM(id) OVER () FROM t ORDER BY id")
    assert rows.rows == ((1, "100%", 0.3333, 3), (2, None, 0.6667, 3))
    assert database.execute("UPDATE t SET id = id + 1").rows == ()
    assert sorted(database.table_rows("t", ["id"])) == [(2,), (3,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM mysql.user",
        "DELETE FROM mysql.user",
        "SELECT 1 INTO OUTFILE '/tmp/cua-train-hostile'",
        "SELECT 1; SELECT 2",
        "CREATE TABLE u (a INT)",
        "DROP TABLE t",
        "GRANT ALL ON *.* TO root",
        "SET GLOBAL max_connections = 1",
        "KILL 1",
        "SHUTDOWN",
        "LOAD DATA INFILE '/etc/passwd' INTO TABLE t",
        "LOCK TABLES t WRITE",
        "CALL mysql.x()",
        "SELECT 'a\0b'",
        "SELECT '\ud800'",
        "SELECT '" + "x" * 30_000 + "'",
    ],
)
def test_nothing_is_reached_beyond_the_sessions_tables(database: MysqlDatabase, sql: str) -> None:
    with pytest.raises(SqlRefusedError):
        database.execute(sql)
    assert database.execute("SELECT COUNT(*) FROM t").rows == ((2,),)


def test_files_of_the_server_are_not_read(database: MysqlDatabase) -> None:
    assert database.execute("SELECT LOAD_FILE('/etc/passwd')").rows == ((None,),)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SLEEP(100)",
        "SELECT COUNT(*) FROM " + ", ".join(f"t AS t{number}" for number in range(40)),
        "UPDATE t SET id = SLEEP(100)",
        "INSERT INTO t SELECT a.* FROM t AS a, "
        + ", ".join(f"t AS t{number}" for number in range(24)),
    ],
    ids=["sleep", "join", "update", "insert"],
)
def test_a_statement_without_end_is_stopped_and_undone(database: MysqlDatabase, sql: str) -> None:
    begun_s = monotonic()
    with pytest.raises(SqlRefusedError, match="took longer than 1 s"):
        database.execute(sql)
    assert monotonic() - begun_s < 20
    assert sorted(database.table_rows("t", ["id"])) == [(1,), (2,)]


def test_rows_beyond_the_limit_are_left_out(database: MysqlDatabase) -> None:
    many = "WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 90)"
    rows = database.execute(f"{many} SELECT n FROM c")
    assert (len(rows.rows), rows.is_truncated) == (50, True)


def test_sessions_never_meet_and_leave_nothing(admin: Administrator) -> None:
    one, other = MysqlDatabase(admin, SETUP, LIMITS), MysqlDatabase(admin, SETUP, LIMITS)
    assert len(databases(admin)) == len(users(admin)) == 2
    one.execute("DELETE FROM t")
    assert other.execute("SELECT COUNT(*) FROM t").rows == ((2,),)
    names = sorted(databases(admin))
    for name in names:
        with pytest.raises(SqlRefusedError, match="denied"):
            (one if name != one._named().name else other).execute(f"SELECT * FROM {name}.t")
    one.close()
    other.close()
    assert databases(admin) == users(admin) == set()


def test_a_killed_connection_costs_one_statement(
    database: MysqlDatabase, admin: Administrator
) -> None:
    database.execute("SELECT 1")
    admin.end_statements(database._named())
    with pytest.raises(SqlRefusedError):
        database.execute("SELECT 1")
    assert database.execute("SELECT COUNT(*) FROM t").rows == ((2,),)


KILLED = """
import sys, time
from producer.sql_execution import Limits
from producer.sql_execution.mysql_admin import administrator
from producer.sql_execution.mysql_session import MysqlDatabase
from producer.sql_execution.mysql_admin import parse_server_url
MysqlDatabase(administrator(parse_server_url(sys.argv[1])), (), Limits()).execute("SELECT 1")
print("open", flush=True)
time.sleep(600)
"""


def test_what_a_killed_process_left_is_dropped_at_the_next_start_and_nothing_else(
    mariadb: MariaDbServer, admin: Administrator, database: MysqlDatabase
) -> None:
    killed = subprocess.Popen(
        [sys.executable, "-c", KILLED, mariadb.url], stdout=subprocess.PIPE, cwd=ROOT
    )
    assert killed.stdout is not None
    assert killed.stdout.readline() == b"open\n"
    own = database._named().name
    left = databases(admin) - {own}
    assert len(left) == 1
    # Of a living process nothing is dropped.
    Administrator(admin.url).close()
    assert databases(admin) == {own} | left
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    deadline = monotonic() + 20
    while databases(admin) != {own} and monotonic() < deadline:
        Administrator(admin.url).close()
        time.sleep(0.2)  # the server has yet to see that its client is gone
    assert databases(admin) == users(admin) == {own}


def test_a_broken_setup_leaves_nothing(admin: Administrator) -> None:
    with pytest.raises(DatabaseFailedError, match="SQL syntax"):
        MysqlDatabase(admin, [Setup("CREATE TABEL t")], LIMITS)
    assert databases(admin) == set()


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(DatabaseFailedError) as raised:
        administrator(parse_server_url("mysql://root:secret@127.0.0.1:9"))
    assert "mysql://root@127.0.0.1:9 cannot be reached" in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mysql://root:p%40w@h:3307", ServerUrl("h", 3307, "root", "p@w")),
        ("mariadb://root@h", ServerUrl("h", 3306, "root", "")),
        ("mysql://u:p@h/bench", ServerUrl("h", 3306, "u", "p", "bench")),
    ],
)
def test_a_url_says_where_and_who(url: str, expected: ServerUrl) -> None:
    assert parse_server_url(url) == expected


@pytest.mark.parametrize(
    "url",
    ["", "postgresql://u@h", "mysql://h", "mysql://u@h:x", "mysql://u@h/My-DB", "mysql://u@h?a"],
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"URL|begin the names"):
        parse_server_url(url)
