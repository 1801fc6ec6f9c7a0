"""The embedded SQLite, MariaDB and (with CUA_TEST_MYSQL) MySQL: the same rows, tables, outcomes."""

import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pytest

from producer.agents import AGENTS
from producer.agents.dbbench.agent import PASSWORD
from producer.agents.dbbench.codec import DbBenchCodec
from producer.agents.dbbench.data.generate import generate
from producer.agents.dbbench.data.skills import SKILLS, is_ordered
from producer.agents.dbbench.data.table import open_embedded, state_hash
from producer.agents.dbbench.data.tasks import task_of
from producer.agents.dbbench.environment import DbBenchEnvironment, OpenDatabase, open_on_server
from producer.config import RunConfig
from producer.environments.environment import TextObservation
from producer.rollouts.requests import Act
from producer.sql_execution import Cell, SqlRefusedError
from producer.sql_execution.mysql_admin import administrator, parse_server_url
from producer.validators.verdict import Evidence
from schemas.actions import Answer, ExecuteSql
from schemas.entry import Column, EntryContent, TableInfo
from schemas.turn import TakenAction
from tests.support.declarations import DECLARATIONS
from tests.support.mariadb import MariaDbServer

STATEMENTS = Path(__file__).with_name("statements.sql").read_text().splitlines()
TYPED_STATEMENTS = Path(__file__).with_name("typed_statements.sql").read_text().splitlines()
PEOPLE = TableInfo(
    name="people",
    columns=(
        Column(name="id", type="INT"),
        Column(name="name", type="TEXT"),
        Column(name="city", type="TEXT"),
        Column(name="age", type="INT"),
        Column(name="pay", type="INT"),
    ),
    rows=(
        (1, "Ann", "Oslo", 31, 100),
        (2, "bob", "paris", 25, 250),
        (3, "Cé", "Paris", None, 70),
        (4, "Dan ", "oslo", 40, None),
        (5, "5 apples", "Rome", 31, 33),
        (6, "O'Neil, Jr", "Rome", 22, 1),
        (7, None, "Rome", 22, 7),
    ),
)
PRODUCTS = TableInfo(
    name="products",
    columns=(
        Column(name="name", type="VARCHAR(50)"),
        Column(name="price", type="DECIMAL(10,2)"),
        Column(name="quantity", type="INT"),
        Column(name="sold", type="DATETIME"),
        Column(name="day", type="DATE"),
        Column(name="at", type="TIME"),
        Column(name="weight", type="DOUBLE"),
        Column(name="pieces", type="DECIMAL(6,0)"),
        Column(name="code", type="CHAR(4)"),
        Column(name="tiny", type="TINYINT"),
        Column(name="f", type="FLOAT"),
    ),
    rows=(
        (
            *("Laptop", 999.99, 10, "2024-01-31 10:00:00", "2024-01-31", "09:05:00"),
            *(1.5, "3", "ab", 1, 0.1),
        ),
        (
            *("Desk", 300, 5, "2023-12-01", "2023-12-01", "23:59:59"),
            *(20, "12", "abcd", -5, 123456.789),
        ),
        ("Pen", -0.5, None, None, None, None, None, None, None, None, None),
        (
            *(None, "1.005", -3, "1999-09-09 09:09:09", "1999-9-9", "00:00:00"),
            *(-1e20, "-7", "x y", 127, 16777217),
        ),
        (
            *("chair ", 99.995, 0, "2024-02-29 23:00:01", "2024-02-29", "12:00:00"),
            *(1e-7, 0, "", 0, 1e10),
        ),
        ("near", None, None, None, None, None, None, None, None, None, 8537673),
        ("nearer", None, None, None, None, None, None, None, None, None, 8537674),
    ),
)
"""Of every kind of type, with NULL, negative and rounded values."""
KEYED_STATEMENTS = Path(__file__).with_name("keyed_statements.sql").read_text().splitlines()
KEYED = TableInfo(
    name="users",
    columns=(
        Column(name="id", type="INT AUTO_INCREMENT PRIMARY KEY"),
        Column(name="email", type="NVARCHAR(30) NOT NULL UNIQUE COMMENT 'of work'"),
        Column(name="name", type="CHARACTER VARYING(20) COLLATE utf8mb4_general_ci DEFAULT 'no'"),
        Column(name="age", type="INT4 UNSIGNED NOT NULL DEFAULT 18"),
        Column(name="score", type="DEC(6,2) DEFAULT 1.005"),
        Column(name="born", type="DATE DEFAULT '2000-1-2'"),
        Column(name="code", type="NCHAR(4) UNIQUE"),
        Column(name="note", type="TEXT(20)"),
        Column(name="is_new", type="BOOL NOT NULL DEFAULT TRUE"),
    ),
    rows=(
        (1, "ann@x.org", "Ann", 31, 2.5, "1993-05-06", "a", "x", 0),
        (2, "bob@x.org", None, 25, None, None, None, None, 1),
        (5, "cé@x.org", "Cé", 18, 100, "1999-12-31", "b ", "", 1),
        (7, "dan@x.org", "dan", 40, -3, "2001-01-01", None, "y", 0),
    ),
)
"""Of columns with attributes."""
CODEC = DbBenchCodec()
Found = tuple[object, str]
"""The rows (None: refused), and the table's hash afterwards."""


@pytest.fixture(scope="module")
def open_server(mariadb: MariaDbServer) -> OpenDatabase:
    return open_on_server(os.environ.get("CUA_TEST_MYSQL") or mariadb.url)


def found(open_database: OpenDatabase, table: TableInfo, statements: Sequence[str]) -> list[Found]:
    database = open_database(table)
    results: list[Found] = []
    try:
        for sql in statements:
            try:
                rows: object = comparable(database.execute(sql).rows, sql)
            except SqlRefusedError:
                rows = None
            results.append((rows, state_hash(database, table)))
    finally:
        database.close()
    return results


def comparable(rows: Sequence[Sequence[Cell]], sql: str) -> list[str]:
    """Numbers by their value, rows in order where the statement orders them."""
    shown = [
        repr([float(f"{cell:.9g}") if isinstance(cell, int | float) else cell for cell in row])
        for row in rows
    ]
    return shown if is_ordered(sql) else sorted(shown)


def sessions(statements: Sequence[str]) -> list[list[str]]:
    """Reading statements share a session, each changing one has its own."""
    grouped = groupby(filter(None, statements), lambda sql: sql.split()[0] in {"SELECT", "WITH"})
    return [
        batch
        for is_reading, group in grouped
        for batch in ([list(group)] if is_reading else [[sql] for sql in group])
    ]


@pytest.mark.parametrize(
    ("table", "listed", "at_least"),
    [(PEOPLE, STATEMENTS, 190), (PRODUCTS, TYPED_STATEMENTS, 125), (KEYED, KEYED_STATEMENTS, 50)],
    ids=["plain", "typed", "keyed"],
)
def test_statements_of_every_kind_give_the_same_rows_and_tables(
    open_server: OpenDatabase, table: TableInfo, listed: list[str], at_least: int
) -> None:
    assert len(listed) > at_least
    different = []
    for statements in sessions(listed):
        here = found(open_embedded, table, statements)
        there = found(open_server, table, statements)
        different += [
            (sql, one, other)
            for sql, one, other in zip(statements, here, there, strict=True)
            if one != other
        ]
    assert different == []


def test_a_declaration_means_on_the_server_what_it_is_read_as(mariadb: MariaDbServer) -> None:
    admin = administrator(parse_server_url(os.environ.get("CUA_TEST_MYSQL") or mariadb.url))
    access = admin.create()
    try:
        shown = {}
        for text in sorted({text for pair in DECLARATIONS for text in pair}):
            admin.run(access.name, f"CREATE TABLE t (c {text})")
            ((shown[text],),) = admin.run(
                access.name,
                "SELECT JSON_ARRAY(column_type, is_nullable, column_default, column_key, extra)"
                " FROM information_schema.columns WHERE table_schema = DATABASE()",
            )
            admin.run(access.name, "DROP TABLE t")
    finally:
        admin.drop(access)
    assert [shown[read] for _, read in DECLARATIONS] == [shown[text] for text, _ in DECLARATIONS]


def wrong(entry: EntryContent, number: int) -> str:
    """What an agent may write instead of the gold."""
    table, sql = entry.table_info, str(entry.sql)
    assert table is not None
    group, number_column = table.columns[1].name, table.columns[4].name
    return (
        sql.replace(">", "<") + " ",
        sql.replace(f" {table.name}", f" {table.name}_2"),
        sql.replace("name", "nothing"),
        f"SELECT {group}, AVG({number_column}) FROM {table.name} GROUP BY 1",
        f"SELECT name, COUNT(*) FROM {table.name}",
        f"UPDATE {table.name} SET {number_column} = {number_column} / 2",
        f"DELETE FROM {table.name} WHERE {table.columns[3].name} % 2 = 0",
        f"INSERT INTO {table.name} (name, {number_column}) VALUES ('x', 'y')",
        sql[: len(sql) // 2],
        f"{sql}; {sql}",
    )[number % 10]


def play(
    open_database: OpenDatabase, entry: EntryContent, sql: str
) -> tuple[str | None, bool, object, str | None]:
    """What a session that executes and answers with what it saw comes to."""
    environment = DbBenchEnvironment(open_database)
    task = task_of(entry)
    observation = environment.open(task, 0)
    taken: list[TakenAction] = []
    text = CODEC.encode(ExecuteSql(sql=sql), 0, 0)
    acted = Act(CODEC.parse(text, 0, 0), observation).perform(environment)
    taken += acted.actions
    assert isinstance(acted.observation, TextObservation)
    said = acted.observation.text or ""
    answer = Answer(text=said.replace("\n", " "))
    taken += CODEC.parse(CODEC.encode(answer, 0, 0), 0, 0)
    verdict = environment.judge(task, Evidence((), tuple(taken), 2))
    environment.close()
    shown = "error" if acted.observation.error is not None else said
    table = verdict.actual if entry.answer_md5 is not None else None
    return shown, verdict.success, verdict.details, table


def test_hundreds_of_sessions_come_to_the_same(open_server: OpenDatabase) -> None:
    num_right, different = 0, []
    for number, entry in enumerate(generate(110, seed=11)):
        # Of each skill's five entries in turn the gold and something else.
        is_gold = (number + number // len(SKILLS)) % 2 == 0
        sql = str(entry.sql) if is_gold else wrong(entry, number // 2)
        here, there = play(open_embedded, entry, sql), play(open_server, entry, sql)
        num_right += here[1]
        if is_gold:
            assert here[1], sql
        if "GROUP BY" in sql and "ORDER BY" not in sql:  # in any order
            here, there = ("", *here[1:]), ("", *there[1:])
        if here != there:
            different.append((sql, here, there))
    assert different == []
    assert 55 <= num_right < 85


def test_a_run_has_its_sessions_on_the_server_that_is_named(
    mariadb: MariaDbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = parse_server_url(mariadb.url)
    monkeypatch.setenv(PASSWORD, server.password)
    config = RunConfig(environment="dbbench", dbbench_database=server.redacted)
    (entry,) = generate(1, seed=0)
    AGENTS["dbbench"].check_task(config, task_of(entry))
    environment = AGENTS["dbbench"].make_environment(config)
    environment.open(task_of(entry), 0)
    answered = environment.act(ExecuteSql(sql="SELECT VERSION()"))
    environment.close()
    assert isinstance(answered, TextObservation)
    assert "MariaDB" in str(answered.text)
