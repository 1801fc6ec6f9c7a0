"""Questions of text-to-SQL: judged by executed rows, whatever the policy writes."""

import json
import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from pydantic import JsonValue

from producer.agents.text_to_sql.codec import TextToSqlCodec
from producer.agents.text_to_sql.data.databases import data_folders, database_sha256, find_database
from producer.agents.text_to_sql.environment import TextToSqlEnvironment
from producer.codecs.codec import parse_error
from producer.environments.environment import ActionRefusedError, EnvironmentFailedError
from producer.task import Task
from producer.tasks.sources import load_tasks
from producer.validators.verdict import Evidence, Verdict
from schemas.actions import Answer, Click
from schemas.completion import CompletionExecuted
from schemas.entry import EntryContent
from tests.support.paths import ROOT

CODEC = TextToSqlCodec()
GOLD = "SELECT title, price FROM book WHERE price > 5"
AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "books.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT, price INTEGER, note BLOB);"
            "INSERT INTO book VALUES (1, 'A', 4, NULL), (2, 'B', 6, x'0a'), (3, 'C', 8, NULL),"
            " (4, 'B', 6, NULL)"
        )
    return path


def task_of(gold: str | None = GOLD) -> Task:
    entry = EntryContent(
        kind="text_to_sql", entry_id="7", instruction="Which?", database="books", sql=gold
    )
    return Task("books_7", "books_7", "Which?", None, None, 1, None, None, entry=entry)


def judged(database: Path, completion: str, gold: str = GOLD) -> tuple[Verdict, CompletionExecuted]:
    environment = TextToSqlEnvironment(lambda _entry: database)
    task = task_of(gold)
    environment.open(task, 0)
    verdict = environment.judge(task, Evidence((), CODEC.parse(completion, 0, 0), 1))
    environment.close()
    assert verdict.facts is not None
    (event,) = verdict.facts(UUID(int=1), AT)
    assert isinstance(event, CompletionExecuted)
    assert event.executed_at == AT
    return verdict, event


def test_it_is_an_environment_that_judges() -> None:
    environment = TextToSqlEnvironment(lambda _entry: None)
    assert (environment.env_type, environment.box_type) == ("text_to_sql", "database")
    assert environment.is_simulated
    assert environment.ends_on_parse_error


@pytest.mark.parametrize(
    "sql",
    [
        GOLD,
        "SELECT title AS t, price * 1.0 FROM book WHERE price >= 6 ORDER BY price DESC;",
        "SELECT DISTINCT title, price FROM book WHERE price > 5",
        "WITH a AS (SELECT * FROM book WHERE price > 5)\n\nSELECT title, price FROM a",
        "VALUES ('C', 8), ('B', 6), ('B', 6)",
    ],
)
def test_the_gold_s_rows_in_any_order_and_number_are_right(database: Path, sql: str) -> None:
    verdict, event = judged(database, sql)
    assert verdict.success
    assert (event.outcome, event.outcome_reward) == ("correct", 1.0)
    assert event.sql == sql
    assert event.num_rows in {2, 3}
    assert event.execution_time_s is not None
    assert event.error_message is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT title FROM book WHERE price > 5",
        "SELECT price, title FROM book WHERE price > 5",
        "SELECT title, price FROM book",
        "SELECT title, CAST(price AS TEXT) FROM book WHERE price > 5",
        "SELECT title, price FROM book WHERE price > 50",
        "SELECT title, price + 0.0000001 FROM book WHERE price > 5",
    ],
)
def test_other_rows_are_wrong(database: Path, sql: str) -> None:
    verdict, event = judged(database, sql)
    assert not verdict.success
    assert (event.outcome, event.outcome_reward) == ("incorrect", 0.0)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT author FROM book", "no such column: author"),
        ("SELECT title FROM", "incomplete input"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("```sql\nDELETE FROM book\n```", "read-only"),
        ("```sql\nDROP TABLE book\n```", "DROP cannot be executed"),
        ("```sql\nATTACH '/etc/passwd' AS x\n```", "ATTACH cannot be executed"),
        ("```sql\nPRAGMA writable_schema = 1\n```", "PRAGMA cannot be executed"),
        ("SELECT load_extension('x')", "load_extension"),
        ("SELECT readfile('/etc/passwd')", "readfile"),
        ("SELECT writefile('/tmp/x', 'y')", "writefile"),
        ("SELECT * FROM pragma_database_list", "can be executed"),
        ("SELECT hex(zeroblob(2000000000))", ""),
        ("SELECT '\x00'", "NUL"),
    ],
)
def test_what_the_database_refuses_is_the_agent_s_error(
    database: Path, sql: str, message: str
) -> None:
    before = database.read_bytes()
    verdict, event = judged(database, sql)
    assert not verdict.success
    assert event.outcome == "error"
    assert message in str(event.error_message)
    assert event.num_rows is None
    assert database.read_bytes() == before
    assert sorted(database.parent.iterdir()) == [database]


def test_a_query_that_never_ends_is_stopped(database: Path) -> None:
    started = time.monotonic()
    _, event = judged(
        database,
        "WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n) SELECT sum(x) FROM n",
    )
    assert event.outcome == "error"
    assert "stopped" in str(event.error_message)
    assert time.monotonic() - started < 30


def test_more_rows_than_the_limit_are_an_error(database: Path) -> None:
    many = "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n LIMIT 200000)"
    _, event = judged(database, f"{many} SELECT x FROM n")
    assert event.outcome == "error"
    assert "100,000 rows" in str(event.error_message)
    _, event = judged(database, "SELECT 1", gold=f"{many} SELECT x FROM n")
    assert event.outcome == "unknown"


def test_nothing_to_execute_is_no_sql(database: Path) -> None:
    verdict, event = judged(database, "I do not know.")
    assert not verdict.success
    assert (event.outcome, event.sql, event.num_steps) == ("no_sql", None, 0)


def test_a_gold_that_fails_makes_no_completion_right_or_wrong(database: Path) -> None:
    verdict, event = judged(database, "SELECT 1", gold="SELECT x FROM nowhere")
    assert not verdict.success
    assert event.outcome == "unknown"
    assert event.error_message == "the gold cannot be executed: no such table: nowhere"


def test_steps_are_counted_in_cocte_form_alone(database: Path) -> None:
    steps = "WITH a AS (SELECT * FROM book),\n\nb AS (SELECT * FROM a)\n\nSELECT * FROM b"
    assert judged(database, steps)[1].num_steps == 3
    assert judged(database, f"```sql\n{steps}\n```")[1].num_steps == 3
    assert judged(database, steps.replace("\n\n", "\n"))[1].num_steps == 0
    assert judged(database, GOLD)[1].num_steps == 0


def test_a_changed_gold_database_is_executed_again(database: Path) -> None:
    assert judged(database, GOLD)[0].success
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("INSERT INTO book VALUES (5, 'D', 9, NULL)")
    assert judged(database, GOLD)[0].success
    assert not judged(database, "VALUES ('C', 8), ('B', 6)")[0].success


def test_a_database_that_changes_while_it_is_read_judges_nobody(database: Path) -> None:
    """Another process changes the file again and again; the query takes a while."""
    counting = "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n LIMIT 500000)"
    environment = TextToSqlEnvironment(lambda _entry: database)
    evidence = Evidence((), CODEC.parse(f"{counting} SELECT count(*) FROM n", 0, 0), 1)
    assert not environment.judge(task_of(), evidence).success
    with ThreadPoolExecutor(1) as threads:
        judging = threads.submit(environment.judge, task_of(), evidence)
        while not judging.done():
            os.utime(database)
            time.sleep(0.005)
    with pytest.raises(EnvironmentFailedError, match=r"books\.sqlite: .*was changed while"):
        judging.result()


def test_a_database_of_other_bytes_is_another_though_its_size_and_time_are_the_same(
    tmp_path: Path, database: Path
) -> None:
    own = tmp_path / "train_databases/books/books.sqlite"
    own.parent.mkdir(parents=True)
    own.write_bytes(database.read_bytes())
    record = {"question_id": 7, "db_id": "books", "question": "Which?", "SQL": GOLD}
    (tmp_path / "train.json").write_text(json.dumps([record]))
    folders = data_folders({"source_type": "text_to_sql", "path": str(tmp_path)})
    sha256, status = database_sha256(own), own.stat()
    assert find_database(folders, "books", sha256) == own
    own.write_bytes(own.read_bytes().replace(b"C", b"D"))
    os.utime(own, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert own.stat().st_size == status.st_size
    assert find_database(folders, "books", sha256) is None


def test_a_database_that_is_gone_is_no_fault_of_the_agent(tmp_path: Path) -> None:
    environment = TextToSqlEnvironment(lambda _entry: None)
    with pytest.raises(EnvironmentFailedError, match="is in no data set of the task sources"):
        environment.open(task_of(), 0)
    environment = TextToSqlEnvironment(lambda _entry: tmp_path / "none.sqlite")
    with pytest.raises(EnvironmentFailedError, match=r"none\.sqlite"):
        environment.judge(task_of(), Evidence((), CODEC.parse("SELECT 1", 0, 0), 1))


def test_check_executes_the_gold(database: Path) -> None:
    environment = TextToSqlEnvironment(lambda _entry: database)
    environment.check(task_of())
    with pytest.raises(ValueError, match=r"books_7: .*books\.sqlite: the gold cannot be executed"):
        environment.check(task_of("SELECT x FROM nowhere"))
    with pytest.raises(EnvironmentFailedError, match="has no gold"):
        environment.check(task_of(None))
    with pytest.raises(EnvironmentFailedError, match="is no text-to-SQL question"):
        environment.check(replace(task_of(), entry=None))


def test_check_opens_a_large_database_and_leaves_its_golds(database: Path) -> None:
    environment = TextToSqlEnvironment(lambda _entry: database)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE large AS SELECT zeroblob(2000000) AS x")
    environment.check(task_of("SELECT x FROM nowhere"))
    database.write_bytes(b"x" * 2_000_000)
    with pytest.raises(ValueError, match="cannot be opened: file is not a database"):
        environment.check(task_of())


def test_only_an_answer_can_be_given(database: Path) -> None:
    environment = TextToSqlEnvironment(lambda _entry: database)
    assert environment.open(task_of(), 0).text is None
    assert environment.provider_id == "books"
    assert environment.act(Answer(text=GOLD)).text is None
    with pytest.raises(ActionRefusedError, match="click"):
        environment.act(Click(x=1, y=1))


def test_the_last_answer_counts_and_errors_are_none(database: Path) -> None:
    environment = TextToSqlEnvironment(lambda _entry: database)
    calls = (*CODEC.parse("SELECT 1", 0, 0), *CODEC.parse(GOLD, 0, 0), parse_error("parse", "no"))
    assert environment.judge(task_of(), Evidence((), calls, 1)).success


def test_a_database_is_found_by_its_content() -> None:
    source: dict[str, JsonValue] = {
        "source_type": "text_to_sql",
        "path": str(ROOT / "tests/data/spider"),
    }
    folders = data_folders([{"source_type": "demo_all"}, source], {**source, "split": "dev"})
    assert [folder.split for folder in folders] == ["train", "dev"]
    entry = load_tasks(dict(source))[0].entry
    assert entry is not None
    path = find_database(folders, "department_management", entry.database_sha256)
    assert path is not None
    assert database_sha256(path) == entry.database_sha256
    assert find_database(folders, "department_management", "0" * 64) is None
    assert find_database(folders, "other", None) is None
    assert data_folders(None) == ()
