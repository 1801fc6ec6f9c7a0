"""verl's Parquet files of prompts become questions about the databases that they name."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from producer.agents.text_to_sql.data.databases import DataFolder, find_database
from producer.agents.text_to_sql.data.layouts import DataSplit, read_questions
from producer.agents.text_to_sql.data.sound_questions import load_text_to_sql
from producer.errors import UsageError

pytest.importorskip("pyarrow")

ROW: dict[str, Any] = {
    "data_source": "bird",
    "prompt": [{"role": "user", "content": "How many?"}],
    "reward_model": {"style": "rule", "ground_truth": "SELECT count(*) FROM t"},
    "db_id": "shop",
    "extra_info": {"index": 7, "db_path": "files/shop.sqlite"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    create(tmp_path / "files/shop.sqlite")
    return tmp_path


def create(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")


def write(path: Path, *rows: dict[str, Any]) -> Path:
    from pyarrow import Table, parquet

    parquet.write_table(Table.from_pylist(list(rows)), path)
    return path


@pytest.mark.parametrize("by_folder", [False, True])
def test_a_row_is_a_question_with_its_prompt_as_it_stands(folder: Path, by_folder: bool) -> None:
    file = write(folder / "train.parquet", ROW)
    (question,) = read_questions(folder if by_folder else file, "train")
    assert (question.question_id, question.db_id) == (7, "shop")
    assert (question.sql, question.prompt) == ("SELECT count(*) FROM t", "How many?")
    assert question.database == folder / "files/shop.sqlite"
    (task,) = load_text_to_sql(file, "train", "tasks")
    assert task.description == "How many?"
    assert task.entry is not None
    found = find_database([DataFolder(file, "train")], "shop", task.entry.database_sha256)
    assert found == folder / "files/shop.sqlite"


def test_a_system_message_stands_before_the_users(folder: Path) -> None:
    prompt = [{"role": "system", "content": "Write SQL."}, *ROW["prompt"]]
    file = write(folder / "train.parquet", {**ROW, "prompt": prompt})
    assert read_questions(file, "train")[0].prompt == "Write SQL.\n\nHow many?"


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_row_without_a_path_has_its_database_where_birds_are(
    folder: Path, split: DataSplit
) -> None:
    path = folder / f"{split}_databases/shop/shop.sqlite"
    path.parent.mkdir(parents=True)
    create(path)
    file = write(folder / f"{split}.parquet", {**ROW, "extra_info": {"index": 7}})
    assert read_questions(file, split)[0].database == path


def test_a_row_without_a_name_or_a_number_has_those_of_its_file_and_place(folder: Path) -> None:
    row = {name: value for name, value in ROW.items() if name not in {"db_id", "extra_info"}}
    row["database"] = "files/shop.sqlite"
    questions = read_questions(write(folder / "x.parquet", row, row), "train")
    assert [(question.question_id, question.db_id) for question in questions] == [
        (0, "shop"),
        (1, "shop"),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": []}, r"train.parquet\[0\].prompt: expected a text, or messages of system and"),
        (
            {"prompt": [{"role": "assistant", "content": "x"}]},
            r"\[0\].prompt: .* found roles \['assistant'\]",
        ),
        ({"reward_model": {"ground_truth": 3}}, r"\[0\].reward_model.ground_truth: expected SQL"),
        ({"reward_model": None}, r"\[0\].reward_model.ground_truth: expected SQL; found None"),
        ({"extra_info": {"db_path": "no.sqlite"}}, r"\[0\].database: there is no file .*no.sqlite"),
        ({"extra_info": {"db_path": 3}}, r"\[0\].database: expected a path; found 3"),
        ({"extra_info": {"index": "a"}}, r"\[0\].db_id: database 'shop' has no file shop.sqlite"),
        ({"db_id": None, "extra_info": {"index": 1}}, r"\[0\].db_id: expected the database: db_id"),
        ({"extra_info": "x"}, r"\[0\].extra_info: expected fields with values"),
        (
            {"prompt": [{"role": "user", "content": None}]},
            r"\[0\].prompt: expected messages of text; found the content None",
        ),
        (
            {"prompt": [{"role": "user"}]},
            r"\[0\].prompt: expected messages of text; found the content None",
        ),
    ],
)
def test_a_row_that_cannot_be_read_names_file_row_and_field(
    folder: Path, change: dict[str, Any], message: str
) -> None:
    file = write(folder / "train.parquet", {**ROW, **change})
    with pytest.raises(UsageError, match=message):
        read_questions(file, "train")


def test_two_files_of_one_database_name_are_refused(folder: Path) -> None:
    create(folder / "files/other.sqlite")
    other = {**ROW, "extra_info": {"index": 8, "db_path": "files/other.sqlite"}}
    with pytest.raises(UsageError, match=r"\[1\].database: 'shop' has two files"):
        read_questions(write(folder / "train.parquet", ROW, other), "train")


def test_a_row_that_is_wrong_is_left_out_and_the_others_stay(folder: Path) -> None:
    def row(index: int, path: str = "files/shop.sqlite", **change: Any) -> dict[str, Any]:
        return {**ROW, "extra_info": {"index": index, "db_path": path}, **change}

    create(folder / "files/other.sqlite")
    rows = [
        row(0, "files/gone.sqlite"),
        row(1),
        row(2, "files/other.sqlite"),
        row(3, reward_model={"style": "rule", "ground_truth": None}),
        row(4, "files/gone.sqlite", db_id="gone"),
        row(5),
    ]
    file = write(folder / "train.parquet", *rows)
    left_out: list[str] = []
    questions = read_questions(file, "train", left_out)
    assert [question.question_id for question in questions] == [1, 5]
    assert {question.database for question in questions} == {folder / "files/shop.sqlite"}
    reasons = ("no file", "'shop' has two files", "ground_truth: expected SQL", "no file")
    assert [reason in line for reason, line in zip(reasons, left_out, strict=True)] == [True] * 4
    assert len(load_text_to_sql(file, "train", "tasks", skip_invalid=True)) == 2


def test_a_file_without_rows_is_refused(folder: Path) -> None:
    from pyarrow import Table, parquet

    empty = Table.from_pylist([ROW])[:0]
    parquet.write_table(empty, folder / "train.parquet")
    with pytest.raises(UsageError, match=r"train\.parquet: it has no rows"):
        read_questions(folder, "train")


def test_what_is_no_parquet_is_refused(folder: Path) -> None:
    (folder / "train.parquet").write_text("[]")
    with pytest.raises(UsageError, match="it is no Parquet file"):
        read_questions(folder / "train.parquet", "train")
