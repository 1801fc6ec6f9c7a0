"""A training goes on with the golds, tables and databases it was begun with, or is refused."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from producer.config import RunConfig, read_config
from producer.errors import CuaTrainError, UsageError
from producer.training.run import run
from schemas.installation import Installation
from tests.support.reading import ReadLog

OTHER = "'e1' has another table, database or gold"


def begun(kind: str, folder: Path, num_steps: int) -> RunConfig:
    return read_config(
        {
            "model_name": "oracle",
            "oracle_noise": 0.0,
            "environment": kind,
            "tasks": {"source_type": kind, "path": str(folder)},
            "training_name": "kept",
            "num_steps": num_steps,
            "groups_per_batch": 1,
            "group_size": 2,
            "eval_every": 0,
            "eval_episodes": 1,
            "skip_baseline": True,
        }
    )


def entries(folder: Path, gold: int = 1, row: int = 1) -> None:
    """One entry of DB Bench. `gold`: what answers it; `row`: what its table holds."""
    folder.mkdir(exist_ok=True)
    entry = {
        "instruction": "Which a?",
        "table_info": {
            "name": "t",
            "column_info_list": [{"name": "a", "type": "INT"}],
            "row_list": [[row]],
        },
        "answer_info": {"direct": [[gold]], "md5": None, "sql": "SELECT a FROM t"},
        "skill_list": ["select"],
    }
    (folder / "entry_dict.json").write_text(json.dumps({"e1": entry}))


@pytest.mark.parametrize("change", [{"gold": 2}, {"row": 2}], ids=["gold", "table"])
def test_an_entry_of_db_bench_that_changed_is_refused_and_nothing_is_recorded(
    installation: Installation, read_log: ReadLog, tmp_path: Path, change: dict[str, int]
) -> None:
    folder = tmp_path / "entries"
    entries(folder)
    run(begun("dbbench", folder, 1), installation=installation)
    before = read_log()
    entries(folder, **change)
    with pytest.raises(UsageError, match=OTHER):
        run(begun("dbbench", folder, 2), installation=installation)
    shutil.rmtree(folder)
    with pytest.raises(UsageError, match="entries"):
        run(begun("dbbench", folder, 2), installation=installation)
    assert read_log() == before
    entries(folder)
    assert run(begun("dbbench", folder, 2), installation=installation).steps == 2


def questions(folder: Path, sql: str = "SELECT a FROM t") -> Path:
    """One question in BIRD's layout; its database."""
    database = folder / "train_databases/e1/e1.sqlite"
    database.parent.mkdir(parents=True, exist_ok=True)
    record = {"question_id": 1, "db_id": "e1", "question": "Which a?", "SQL": sql}
    (folder / "train.json").write_text(json.dumps([record]))
    return database


@pytest.mark.parametrize("change", ["gold", "rows"])
def test_a_question_or_database_that_changed_is_refused_and_nothing_is_recorded(
    installation: Installation, read_log: ReadLog, tmp_path: Path, change: str
) -> None:
    folder = tmp_path / "questions"
    database = questions(folder)
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2);")
    kept = database.read_bytes()
    run(begun("text_to_sql", folder, 1), installation=installation)
    before = read_log()
    if change == "gold":
        questions(folder, "SELECT 1 FROM t")
    else:
        with closing(sqlite3.connect(database)) as connection:
            connection.executescript("INSERT INTO t VALUES (3)")
    with pytest.raises(UsageError, match="'train_e1_1' has another table, database or gold"):
        run(begun("text_to_sql", folder, 2), installation=installation)
    database.unlink()
    with pytest.raises(CuaTrainError, match=r"e1\.sqlite"):
        run(begun("text_to_sql", folder, 2), installation=installation)
    assert read_log() == before
    questions(folder).write_bytes(kept)
    assert run(begun("text_to_sql", folder, 2), installation=installation).steps == 2
