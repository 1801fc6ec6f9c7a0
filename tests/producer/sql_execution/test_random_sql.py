"""Random texts as SQL: each is answered or refused, and the session goes on."""

import contextlib
from collections.abc import Iterator
from random import Random

import pytest

from producer.agents.dbbench.data.table import open_embedded
from producer.sql_execution import Database, SqlRefusedError
from schemas.entry import Column, TableInfo

TABLE = TableInfo(
    name="t",
    columns=(Column(name="id", type="INT"), Column(name="name", type="TEXT")),
    rows=tuple((number, f"name {number}") for number in range(30)),
)
SPOKEN = (
    "SELECT SELECT INSERT UPDATE DELETE WITH FROM FROM t t t id id name name * WHERE GROUP BY ORDER"
    " BY HAVING LIMIT OFFSET INTO VALUES SET ( ( ) ) , , = < > <= != AND OR NOT NULL IS IN LIKE"
    " BETWEEN CASE WHEN THEN ELSE END AS UNION ALL DISTINCT EXISTS COUNT SUM AVG MAX MIN CONCAT IF"
    " 0 1 -1 2.5 1e9 'a' 'b%' \"c\" `id` ; -- /* */ # || && <=> DIV % / + - DESC OVER PARTITION"
    " RECURSIVE JOIN ON x x.id t.name INTERVAL CAST DATE REGEXP ROUND @x :y ? é \\ '"
)
WORDS = SPOKEN.split()


@pytest.fixture
def database() -> Iterator[Database]:
    made = open_embedded(TABLE)
    yield made
    made.close()


@pytest.mark.parametrize("seed", range(4))
def test_random_texts_are_answered_or_refused(database: Database, seed: int) -> None:
    random = Random(seed)
    num_answered = 0
    for _ in range(150):
        begin = random.choice(("SELECT", "SELECT id FROM t", "UPDATE t SET", "DELETE FROM t", ""))
        sql = " ".join([begin, *random.choices(WORDS, k=random.randint(0, 12))])
        with contextlib.suppress(SqlRefusedError):
            assert len(database.execute(sql).rows) <= 200
            num_answered += 1
        assert len(database.table_rows("t", ["id", "name"])) <= 60, sql
    assert num_answered > 3
