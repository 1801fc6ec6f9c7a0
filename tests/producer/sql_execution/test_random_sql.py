"""Random texts as SQL: each is answered or refused, and the session goes on."""

from random import Random

import pytest

from producer.sql_data.dbbench.setup import open_embedded
from producer.sql_execution import SqlRefusedError
from schemas.entry import Column, TableInfo

TABLE = TableInfo(
    name="t",
    columns=(Column(name="id", type="INT"), Column(name="name", type="TEXT")),
    rows=tuple((number, f"name {number}") for number in range(30)),
)
WORDS = [
    "SELECT",
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "WITH",
    "FROM",
    "FROM",
    "t",
    "t",
    "t",
    "id",
    "id",
    "name",
    "name",
    "*",
    "WHERE",
    "GROUP",
    "BY",
    "ORDER",
    "BY",
    "HAVING",
    "LIMIT",
    "OFFSET",
    "INTO",
    "VALUES",
    "SET",
    "(",
    "(",
    ")",
    ")",
    ",",
    ",",
    "=",
    "<",
    ">",
    "<=",
    "!=",
    "AND",
    "OR",
    "NOT",
    "NULL",
    "IS",
    "IN",
    "LIKE",
    "BETWEEN",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "AS",
    "UNION",
    "ALL",
    "DISTINCT",
    "EXISTS",
    "COUNT",
    "SUM",
    "AVG",
    "MAX",
    "MIN",
    "CONCAT",
    "IF",
    "0",
    "1",
    "-1",
    "2.5",
    "1e9",
    "'a'",
    "'b%'",
    "c",
    "`id`",
    ";",
    "--",
    "/*",
    "*/",
    "#",
    "||",
    "&&",
    "<=>",
    "DIV",
    "%",
    "/",
    "+",
    "-",
    "DESC",
    "OVER",
    "PARTITION",
    "RECURSIVE",
    "JOIN",
    "ON",
    "x",
    "x.id",
    "t.name",
    "INTERVAL",
    "CAST",
    "DATE",
    "REGEXP",
    "ROUND",
    "@x",
    ":y",
    "?",
    "é",
    "\\",
    "'",
]


@pytest.mark.parametrize("seed", range(4))
def test_random_texts_are_answered_or_refused(seed: int) -> None:
    random = Random(seed)
    database = open_embedded(TABLE)
    num_answered, refusals = 0, []
    for _ in range(150):
        begin = random.choice(("SELECT", "SELECT id FROM t", "UPDATE t SET", "DELETE FROM t", ""))
        sql = " ".join([begin, *random.choices(WORDS, k=random.randint(0, 12))])
        try:
            rows = database.execute(sql)
        except SqlRefusedError as error:
            refusals.append(str(error))
        else:
            num_answered += 1
            assert len(rows.rows) <= 200
        assert len(database.table_rows("t", ["id", "name"])) <= 60, sql
    assert num_answered > 10
    assert all(refusals), "every refusal says why"
    database.close()
