"""Published layouts of text-to-SQL data, and what is wrong with a broken one."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from producer.agents.text_to_sql.data.layouts import read_questions
from producer.errors import CuaTrainError, UsageError
from producer.tasks.sources import load_tasks
from tests.support.paths import ROOT

BIRD, SPIDER = ROOT / "tests/data/bird", ROOT / "tests/data/spider"


def source(path: Path, split: str | None = None) -> dict[str, Any]:
    fields: dict[str, Any] = {"source_type": "text_to_sql", "path": str(path)}
    return fields if split is None else {**fields, "split": split}


def test_bird_s_dev_set_is_read_as_it_is_published() -> None:
    questions = read_questions(BIRD / "dev_20240627", "dev")
    assert [question.question_id for question in questions] == [0, 1, 2]
    assert questions[0].sql.startswith("SELECT T1.`Free Meal Count (K-12)` / T2.Enrolled FROM")
    assert questions[0].evidence.startswith("Eligible free rate")
    assert [question.difficulty for question in questions] == ["simple", "moderate", "challenging"]
    assert questions[0].cocte is None
    assert read_questions(BIRD, "dev") == questions


def test_bird_s_training_set_has_no_ids_and_no_difficulties() -> None:
    questions = read_questions(BIRD, "train")
    assert [(question.question_id, question.difficulty) for question in questions] == [
        (0, None),
        (1, None),
    ]


def test_spider_s_training_set_is_both_of_its_files() -> None:
    questions = read_questions(SPIDER, "train")
    assert [question.question_id for question in questions] == [0, 1, 2]
    assert questions[2].sql == "SELECT Name FROM department"
    (dev,) = read_questions(SPIDER, "dev")
    assert dev.sql == "SELECT count(*) FROM singer"
    assert dev.evidence == ""


def test_tasks_have_the_schema_the_hint_and_the_question() -> None:
    task = load_tasks(source(BIRD, "dev"))[0]
    assert task.task_id == "dev_california_schools_0"
    assert (task.difficulty, task.category, task.split) == ("easy", "california_schools", "eval")
    assert task.max_steps == 1
    assert task.validation_type == "environment"
    schema, evidence, question = task.description.split("\n\n")
    assert schema == (
        "CREATE TABLE schools (\n"
        "  CDSCode TEXT PRIMARY KEY,\n"
        "  County TEXT, -- County name\n"
        '  "School Name" TEXT, -- Name of the school, as registered\n'
        "  Enrolled INTEGER -- Students enrolled\n"
        ");\n"
        "CREATE TABLE frpm (\n"
        "  CDSCode TEXT PRIMARY KEY,\n"
        '  "Free Meal Count (K-12)" REAL, -- Free meals \u2013 café included\n'
        "  Year INTEGER, -- Academic year\n"
        "  FOREIGN KEY (CDSCode) REFERENCES schools (CDSCode)\n"
        ");"
    )
    assert evidence.startswith("Evidence: Eligible free rate for K-12 =")
    assert question.startswith("Question: What is the highest eligible")
    entry = task.entry
    assert entry is not None
    assert entry.database == "california_schools"
    assert entry.instruction == question.removeprefix("Question: ")
    assert entry.database_sha256 is not None
    assert len(entry.database_sha256) == 64


def test_a_source_takes_filters_and_a_limit() -> None:
    hard = load_tasks({**source(BIRD, "dev"), "difficulty": "hard"})
    assert [task.task_id for task in hard] == ["dev_california_schools_2"]
    assert len(load_tasks({**source(BIRD, "dev"), "limit": 2})) == 2
    assert [task.split for task in load_tasks(source(SPIDER))] == ["train"] * 3


@pytest.fixture
def bird(tmp_path: Path) -> Path:
    shutil.copytree(BIRD, tmp_path / "bird")
    return tmp_path / "bird/dev_20240627"


def refused(path: Path, split: str | None = "dev") -> CuaTrainError:
    with pytest.raises(CuaTrainError) as caught:
        load_tasks(source(path, split))
    return caught.value


@pytest.mark.parametrize(
    ("number", "field", "value", "message"),
    [
        (1, "SQL", None, "dev.json[1].SQL: expected a text; found n"),
        (1, "SQL", "  ", 'dev.json[1].SQL: expected a text; found "'),
        (2, "question", 7, "dev.json[2].question: expected a text"),
        (2, "question", "half \ud83d", "dev.json[2].question: contains text that is not valid Uni"),
        (2, "question", "a\0b", "dev.json[2].question: contains a NUL"),
        (1, "SQL", "SELECT 'a\0'", "dev.json[1].SQL: contains a NUL"),
        (2, "db_id", "x" * 300, "dev.json[2].db_id: expected a plain"),
        (2, "question_id", "\ud83d", 'dev.json[2].question_id: expected a number; found "\\ud83d"'),
        (2, "question_id", float("nan"), "dev.json: cannot be read as JSON: NaN is no number"),
        (0, "evidence", [], "dev.json[0].evidence: expected a text"),
        (0, "difficulty", 1, "dev.json[0].difficulty: expected"),
        (0, "db_id", None, "dev.json[0].db_id: expected a text"),
        (2, "db_id", "other", "dev.json[2].db_id: database 'other' has no file other.sqlite in"),
        (2, "db_id", "../../train/train_databases/movie_platform", "expected a plain name"),
        (2, "question_id", "x", "dev.json[2].question_id: expected"),
        (2, "question_id", True, "dev.json[2].question_id: expected"),
        (2, "question_id", 0, "two questions have the question_id 0"),
    ],
)
def test_a_broken_record_is_named_by_file_and_field(
    bird: Path, number: int, field: str, value: object, message: str
) -> None:
    records = json.loads((bird / "dev.json").read_text())
    records[number][field] = value
    (bird / "dev.json").write_text(json.dumps(records))
    error = refused(bird)
    assert isinstance(error, UsageError)
    assert str(error).startswith("tasks: ")
    assert message in str(error)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"db_id": "california_schools"}, "x"], "dev.json[1]: expected an object"),
        ({}, "dev.json: expected a JSON array of questions; found {}; correct the data"),
        ([], "dev.json: no questions; correct the data"),
        (
            [{"db_id": "california_schools", "question": "q"}],
            "dev.json[0]: has no gold: expected SQL (BIRD) or query (Spider)",
        ),
        (
            [{"db_id": "california_schools", "question": "q"}, {"SQL": "SELECT 1"}],
            "dev.json[0].SQL: expected a text; found nothing",
        ),
    ],
)
def test_a_file_without_questions_is_named(bird: Path, records: object, message: str) -> None:
    (bird / "dev.json").write_text(json.dumps(records))
    assert message in str(refused(bird))


def test_files_that_are_no_data_are_named(bird: Path) -> None:
    database = bird / "dev_databases/california_schools/california_schools.sqlite"
    (bird / "dev.json").rename(bird / "kept")
    assert "split 'dev' has no file here: expected dev.json (BIRD)" in str(refused(bird))
    (bird / "dev.json").write_text("{")
    assert "dev.json: cannot be read as JSON" in str(refused(bird))
    (bird / "kept").replace(bird / "dev.json")
    whole = database.read_bytes()
    database.write_bytes(b"SQLite format 3\0" + b"\xff" * 3000)
    assert f"{database}: is no SQLite database that can be read" in str(refused(bird))
    database.write_bytes(b"text")
    assert f"{database}: is no SQLite database that can be read" in str(refused(bird))
    database.write_bytes(b"")
    assert f"{database}: the database has no tables" in str(refused(bird))
    database.write_bytes(whole)


@pytest.mark.parametrize("folder", ["", "MINIDEV"])
def test_bird_s_mini_dev_is_read_as_it_is_published(
    bird: Path, tmp_path: Path, folder: str
) -> None:
    published = tmp_path / "minidev"
    published.mkdir()
    bird.rename(published / "MINIDEV")
    (published / "MINIDEV" / "dev.json").rename(published / "MINIDEV" / "mini_dev_sqlite.json")
    assert load_tasks(source(published / folder, "dev"))


def test_a_folder_that_is_not_there_is_named_and_cannot_be_left_out(tmp_path: Path) -> None:
    error = refused(tmp_path / "no")
    assert isinstance(error, UsageError)
    assert str(error).endswith("/no: there is no such folder")


def test_another_split_that_the_folder_has_is_named() -> None:
    error = refused(SPIDER, "test")
    assert "split 'test' has no file here" in str(error)
    assert "the folder has train, dev" in str(error)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source_type": "text_to_sql"}, "tasks.path: required"),
        ({"source_type": "demo_all", "path": "x"}, "tasks.path: unknown field"),
        ({"source_type": "demo_all", "split": "dev"}, "tasks.split: unknown field"),
        (
            {"source_type": "text_to_sql", "path": "x", "split": "held_out"},
            'tasks.split: unknown value "held_out". Use one of train, dev, test',
        ),
    ],
)
def test_fields_fit_the_source_type(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_tasks(fields)


def test_names_that_are_no_plain_words_are_quoted(tmp_path: Path) -> None:
    folder = tmp_path / "dev_databases/odd"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "odd.sqlite")) as connection:
        connection.executescript(
            'CREATE TABLE "order" ("group" TEXT, "a ""b" INT, größe REAL);'
            "CREATE TABLE child (x, y REFERENCES parent, PRIMARY KEY (x, y));"
            "CREATE VIEW seen AS SELECT 1"
        )
    record = {"question_id": 0, "db_id": "odd", "question": "q", "SQL": "SELECT 1"}
    (tmp_path / "dev.json").write_text(json.dumps([record]))
    (task,) = load_tasks(source(tmp_path, "dev"))
    assert task.description == (
        'CREATE TABLE "order" ("group" TEXT, "a ""b" INT, "größe" REAL);\n'
        "CREATE TABLE child (x, y, PRIMARY KEY (x, y), FOREIGN KEY (y) REFERENCES parent);\n\n"
        "Question: q"
    )


def test_a_prompt_is_bounded_and_says_so() -> None:
    from producer.agents.text_to_sql.data.tasks import prompt_text

    statements = [f"CREATE TABLE t{at} (x TEXT);" for at in range(100)]
    prompt = prompt_text(statements, "q", max_chars=70)
    assert prompt == (
        "CREATE TABLE t0 (x TEXT);\nCREATE TABLE t1 (x TEXT);\n-- 98 more tables are not shown\n\n"
        "Question: q"
    )
    assert len(prompt_text(["x" * 100_000], "q")) < 100
    long = prompt_text([], "q" * 100_000, "e" * 100_000)
    assert len(long) < 8_200
    assert "[cut: 96,000 more characters]" in long
