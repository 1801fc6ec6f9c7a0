"""A published data set with unsound questions: refused, or without them, counted and named."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from producer.errors import UsageError
from producer.fine_tuning.questions import read_answered
from producer.tasks.sources import load_tasks
from tests.support.paths import ROOT

Record = dict[str, object]


@pytest.fixture
def bird(tmp_path: Path) -> Path:
    """Three sound questions about one database."""
    shutil.copytree(ROOT / "tests/data/bird/dev_20240627", tmp_path / "bird")
    return tmp_path / "bird"


def source(folder: Path, **more: JsonValue) -> dict[str, JsonValue]:
    return {"source_type": "text_to_sql", "path": str(folder), "split": "dev", **more}


def add(folder: Path, **changed: object) -> None:
    """One more question, like the first."""
    path = folder / "dev.json"
    records = json.loads(path.read_text())
    path.write_text(json.dumps([*records, {**records[0], "question_id": 7, **changed}]))


def unreadable(folder: Path) -> None:
    database = folder / "dev_databases/broken/broken.sqlite"
    database.parent.mkdir()
    database.write_bytes(b"no database")
    add(folder, db_id="broken")


UNSOUND: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: add(folder, db_id="gone"), "database 'gone' has no file gone.sqlite"),
    (lambda folder: add(folder, db_id="../up"), "expected a plain name"),
    (unreadable, "is no SQLite database that can be read"),
    (lambda folder: add(folder, SQL=""), "dev.json[3].SQL: expected a text"),
    (lambda folder: add(folder, question=3), "dev.json[3].question: expected a text"),
    (lambda folder: add(folder, question_id=0), "two questions have the question_id 0"),
    (lambda folder: add(folder, SQL="SELECT x FROM nowhere"), "the gold cannot be executed"),
    (lambda folder: add(folder, cocte="no steps"), "question 7 about california_schools"),
]


@pytest.mark.parametrize(("make", "problem"), UNSOUND)
def test_what_is_unsound_is_left_out_counted_and_named(
    make: Callable[[Path], object], problem: str, bird: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sound = load_tasks(source(bird))
    make(bird)
    found = load_tasks(source(bird, skip_invalid=True))
    assert load_tasks(source(bird, skip_invalid=True)) == found == sound
    summary, named = caplog.messages
    assert summary == f"{bird}: 1 of 4 questions are left out"
    assert problem in named


@pytest.mark.parametrize(("make", "problem"), UNSOUND[:6])
def test_without_the_setting_it_is_refused_with_the_way_out(
    make: Callable[[Path], object], problem: str, bird: Path
) -> None:
    make(bird)
    with pytest.raises(UsageError) as refused:
        load_tasks(source(bird))
    assert problem in str(refused.value)
    assert '"skip_invalid": true in the task source' in str(refused.value)


@pytest.mark.parametrize("content", ["{}", "[]", "[", "[1]"])
def test_what_is_wrong_with_a_whole_file_cannot_be_left_out(bird: Path, content: str) -> None:
    (bird / "dev.json").write_text(content)
    for skip_invalid in (False, True):
        with pytest.raises(UsageError) as refused:
            load_tasks(source(bird, skip_invalid=skip_invalid))
        assert str(refused.value).endswith("; correct the data")


def test_a_data_set_without_a_sound_question_is_refused(bird: Path) -> None:
    path = bird / "dev.json"
    path.write_text(json.dumps([{"db_id": "gone", "question": "?", "SQL": "SELECT 1"}]))
    with pytest.raises(UsageError, match=r"no question of split 'dev' is sound: .*'gone' has no"):
        load_tasks(source(bird, skip_invalid=True))


def test_other_sources_do_not_have_the_setting() -> None:
    with pytest.raises(UsageError, match="skip_invalid: unknown field"):
        load_tasks({"source_type": "demo_all", "skip_invalid": True})


def test_imitation_leaves_the_same_questions_out(bird: Path) -> None:
    train = bird.parent / "train"
    shutil.copytree(bird / "dev_databases", train / "train_databases")
    records = json.loads((bird / "dev.json").read_text())
    bad: Record = {**records[0], "question_id": 9, "SQL": "SELECT x FROM nowhere"}
    (train / "train.json").write_text(json.dumps([*records, bad]))
    assert len(read_answered(train, None, skip_invalid=True)) == 3
    assert len(read_answered(train, None)) == 4


def test_questions_with_one_prompt_are_in_one_group(bird: Path) -> None:
    train = bird.parent / "train"
    shutil.copytree(bird / "dev_databases", train / "train_databases")
    records = json.loads((bird / "dev.json").read_text())
    again: Record = {**records[0], "question_id": 9}
    (train / "train.json").write_text(json.dumps([*records, again]))
    groups = [asked.group for asked in read_answered(train, None)]
    assert groups[-1] == groups[0]
    assert len(set(groups)) == len(records)
