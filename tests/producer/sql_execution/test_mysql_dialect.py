"""MySQL's statements in the embedded SQLite: rows worked out by hand from MySQL's rules."""

from collections.abc import Iterator

import pytest

from producer.agents.dbbench.data.table import LIMITS, open_embedded
from producer.sql_execution import Cell, Database, SqlRefusedError
from producer.sql_execution.mysql_dialect import NotMysqlError, translate
from producer.sql_execution.mysql_functions import collation_key
from producer.sql_execution.mysql_tested import TESTED
from schemas.entry import Column, TableInfo
from tests.producer.sql_execution.hostile import ALLOWED, HOSTILE
from tests.support.tested_functions import used_in_statements

TABLE = TableInfo(
    name="t",
    columns=(Column(name="id", type="INT"), Column(name="name", type="TEXT")),
    rows=((1, "Ann"), (2, "bob "), (4, None)),
)


@pytest.fixture
def database() -> Iterator[Database]:
    made = open_embedded(TABLE)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("sql", "row"),
    [
        ("SELECT AVG(id) FROM t", (2.3333,)),
        ("SELECT AVG(id) AS a FROM t WHERE id < 3", (1.5,)),
        ("SELECT 10 / 3, 1 / 3 * 3, 7 DIV 2, -7 DIV 2", (3.3333, 1.0, 3, -3)),
        ("SELECT 7 % 3, -7 % 3, 7.5 % 2, 5 % 0, 5 / 0", (1, -1, 1.5, None, None)),
        ("SELECT ROUND(2.5), ROUND(-2.5), ROUND(1.005, 2), ROUND(15, -1)", (3, -3, 1.01, 20)),
        ("SELECT FLOOR(2.7), CEIL(2.1), ABS(-3)", (2, 3, 3)),
        ("SELECT 'a' = 'A', 'a' = 'a ', 'e' = 'é', 'a' < 'B'", (1, 1, 1, 1)),
        ("SELECT COUNT(*) FROM t WHERE name = 'ANN'", (1,)),
        ('SELECT COUNT(*) FROM t WHERE name = "name"', (0,)),
        ("SELECT COUNT(*) FROM t WHERE name = 0", (2,)),
        ("SELECT COUNT(*) FROM t WHERE name IN ('BOB', 'x')", (1,)),
        ("SELECT COUNT(*) FROM t WHERE id > '1'", (2,)),
        ("SELECT COUNT(*) FROM t WHERE id = 1 || id = 2", (2,)),
        ("SELECT COUNT(*) FROM t WHERE name <=> NULL", (1,)),
        (
            "SELECT CONCAT('a', NULL), CONCAT('a', 1), CONCAT_WS(',', 'a', NULL, 'b')",
            (None, "a1", "a,b"),
        ),
        ("SELECT LENGTH('é'), CHAR_LENGTH('é'), UPPER('é')", (2, 1, "É")),
        ("SELECT LEFT('abc', 2), RIGHT('abc', 2), RIGHT('abc', 0)", ("ab", "bc", "")),
        ("SELECT IF(1 > 2, 'x', 'y'), IFNULL(NULL, 3)", ("y", 3)),
        ("SELECT 'it\\'s', 'it''s', \"a\"\"b\"", ("it's", "it's", 'a"b')),
        ("SELECT 'abc' REGEXP '^A', 'abc' LIKE 'A%', '50%' LIKE '50\\%'", (1, 1, 1)),
        ("SELECT id FROM t ORDER BY id LIMIT 1, 1", (2,)),
        ("SELECT id AS rowid FROM t ORDER BY rowid LIMIT 1", (1,)),
        ("WITH c (oid) AS (SELECT id FROM t) SELECT MAX(oid) FROM c", (4,)),
    ],
)
def test_a_row_is_what_mysql_gives(database: Database, sql: str, row: tuple[Cell, ...]) -> None:
    assert database.execute(sql).rows == (row,)


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        ("UPDATE t SET id = id + 1, name = id", [(2, "2"), (3, "3"), (5, "5")]),
        ("UPDATE t SET id = 2.5 WHERE id = 1", [(2, "bob "), (3, "Ann"), (4, None)]),
        ("UPDATE t SET id = id / 2", [(1, "Ann"), (1, "bob "), (2, None)]),
        ("UPDATE t SET id = 9 ORDER BY id DESC LIMIT 1", [(1, "Ann"), (2, "bob "), (9, None)]),
        ("DELETE FROM t ORDER BY id LIMIT 2", [(4, None)]),
        ("DELETE FROM t WHERE name = 'BOB'", [(1, "Ann"), (4, None)]),
        ("UPDATE t AS x SET x.id = 9 WHERE x.id = 1", [(2, "bob "), (4, None), (9, "Ann")]),
        (
            "INSERT INTO t (id, name) VALUES ('7', 8)",
            [(1, "Ann"), (2, "bob "), (4, None), (7, "8")],
        ),
    ],
)
def test_a_table_is_what_mysql_makes_of_it(
    database: Database, sql: str, table: list[tuple[Cell, ...]]
) -> None:
    database.execute(sql)
    assert sorted(database.table_rows("t", ["id", "name"]), key=str) == table


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT name, COUNT(*) FROM t", "isn't in GROUP BY"),
        ("SELECT id, name FROM t GROUP BY name", "isn't in GROUP BY"),
        ("SELECT id FROM t WHERE id IN (SELECT id FROM t LIMIT 1)", "LIMIT in an IN subquery"),
        ("SELECT name FROM T", "Table 'T' doesn't exist"),
        ("SELECT name FROM (SELECT name FROM t)", "must have its own alias"),
        ("SELECT nothing FROM t", "no such column"),
        ("SELECT `nothing` FROM t", "no such column"),
        ("SELECT * FROM t WHERE", "error in your SQL syntax"),
        ("INSERT INTO t (id) VALUES ('x')", "constraint failed"),
        ("INSERT INTO t (id) VALUES (3000000000)", "constraint failed"),
        ("UPDATE t SET " + ", ".join(["id = id + id"] * 30), "too complex"),
        ("SELECT 'a' REGEXP '" + "a" * 300 + "'", "raised exception"),
        ("SELECT RAND()", "function RAND is not supported"),
        ("SELECT DATE_ADD(, 1 DAY)", "error in your SQL syntax"),
        ("SELECT DAY()", "function DAY is not supported"),
        ("DELETE t ORDER BY id LIMIT 1", "names no table"),
        ("DELETE FROM t RETURNING id", "near RETURNING"),
        ("INSERT INTO t (id) VALUES (7) RETURNING id", "near RETURNING"),
        ("INSERT INTO t (id) VALUES (7) ON CONFLICT DO NOTHING", "near ON CONFLICT"),
        ("INSERT OR REPLACE INTO t (id) VALUES (7)", "near INSERT OR"),
        ("INSERT OR FAIL INTO t (id) SELECT 7 UNION ALL SELECT 'x'", "near INSERT OR"),
        ("SELECT rowid FROM t", "Unknown column 'rowid'"),
        ("UPDATE t SET ROWID = ROWID + 10", "Unknown column 'ROWID'"),
        ("INSERT INTO t (oid, id) VALUES (9, 9)", "Unknown column 'oid'"),
        ("SELECT id FROM t ORDER BY _rowid_", "Unknown column '_rowid_'"),
        ("SELECT printf('%d', 1)", "function PRINTF is not supported"),
    ],
)
def test_what_mysql_refuses_is_refused(database: Database, sql: str, reason: str) -> None:
    with pytest.raises(SqlRefusedError, match=reason):
        database.execute(sql)
    assert len(database.table_rows("t", ["id"])) == 3


def test_hostile_sql_is_answered_or_refused_and_changes_nothing(database: Database) -> None:
    """The same attacks, read as MySQL's; those that only take time are tried elsewhere."""
    quick = [sql for sql, reason in HOSTILE if "too" not in reason and "longer" not in reason]
    assert len(quick) > 60
    for sql in quick:
        try:
            rows = database.execute(sql).rows
        except SqlRefusedError:
            continue
        assert len(rows) <= LIMITS.num_rows
    assert len(database.table_rows("t", ["id"])) == 3


def test_a_pattern_without_end_is_stopped(database: Database) -> None:
    with pytest.raises(SqlRefusedError, match="took longer than 2 s"):
        database.execute(f"SELECT '{'a' * 40}b' REGEXP '^(a+)+$'")
    assert database.execute("SELECT COUNT(*) FROM t").rows == ((3,),)


@pytest.mark.parametrize(
    ("one", "other", "is_equal"),
    [
        ("Abc", "aBC", True),
        ("a  ", "A", True),
        ("é", "E", True),
        ("a", " a", False),
        ("ß", "s", True),
    ],
)
def test_texts_are_equal_without_case_accents_and_spaces_at_the_end(
    one: str, other: str, is_equal: bool
) -> None:
    assert (collation_key(one) == collation_key(other)) is is_equal


def test_the_hostile_list_says_what_is_harmless() -> None:
    assert sum(reason == ALLOWED for _, reason in HOSTILE) > 5


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("SELECT HEX(255)", "HEX"),
        ("SELECT TRUNCATE(3.789, 1)", "TRUNC"),
        ("SELECT DATE_ADD('2024-01-31', INTERVAL 1 MONTH)", "DATE_ADD"),
        ("SELECT CAST(3.7 AS SIGNED)", "CAST AS BIGINT"),
        ("SELECT TYPEOF(1)", "TYPEOF"),
        ("SELECT 'a' GLOB 'b'", "GLOB"),
        ("SELECT no_such(1)", "NO_SUCH"),
    ],
)
def test_a_function_that_was_not_compared_with_mysql_is_refused_by_name(
    sql: str, name: str
) -> None:
    with pytest.raises(NotMysqlError, match=f"the function {name} is not supported"):
        translate(sql, {})


def test_the_list_of_functions_is_that_of_the_compared_statements() -> None:
    assert sorted(TESTED) == used_in_statements()


def test_insert_ignore_is_refused() -> None:
    with pytest.raises(NotMysqlError, match="near IGNORE"):
        translate("INSERT IGNORE INTO t (a) VALUES (1)", {"t": {"a": "INT"}})
