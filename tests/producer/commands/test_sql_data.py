"""`cua-train sql data`: what it writes, reports and refuses."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.cua_train import CuaTrain
from tests.support.paths import ROOT

SMALL = ("--train-databases", "2", "--dev-databases", "1", "--questions-per-template", "1")


def test_data_is_generated_and_its_golds_hold(tmp_path: Path, cua_train: CuaTrain) -> None:
    folder = str(tmp_path / "questions")
    made = cua_train(*("sql", "data", "generate", *SMALL, "--output", folder, "--json"))
    report = json.loads(made.stdout)
    assert report["train"]["num_databases"] == 2
    assert report["output"] == folder
    number = report["dev"]["num_questions"]
    assert sum(report["dev"]["by_difficulty"].values()) == number > 8
    checked = cua_train("sql", "data", "check", folder, "--split", "dev", "--json")
    assert json.loads(checked.stdout) == {
        "questions": number,
        "databases": 1,
        "sound": number,
        "fails": 0,
        "no_rows": 0,
        "cocte": 0,
    }
    again = cua_train("sql", "data", "generate", "--output", folder, expected=2)
    assert "exists and is not empty" in again.stderr


def test_templates_are_chosen_by_name(tmp_path: Path, cua_train: CuaTrain) -> None:
    words = ("sql", "data", "generate", *SMALL, "--output", str(tmp_path / "q"))
    table = cua_train(*words, "--templates", "count, count")
    assert "simple" in table.stdout
    assert "challenging" not in table.stdout
    wrong = cua_train(*words, "--templates", "cuont", expected=2)
    assert "--templates: unknown template 'cuont'. Did you mean 'count'?" in wrong.stderr
    assert "name at least one template" in cua_train(*words, "--templates", ",", expected=2).stderr


@pytest.mark.parametrize(("name", "split", "number"), [("bird", "dev", 3), ("spider", "train", 3)])
def test_published_layouts_are_checked(
    name: str, split: str, number: int, cua_train: CuaTrain
) -> None:
    folder = str(ROOT / "tests/data" / name)
    report = json.loads(
        cua_train("sql", "data", "check", folder, "--split", split, "--json").stdout
    )
    assert (report["questions"], report["sound"]) == (number, number)


def test_golds_that_fail_or_find_nothing_are_named(tmp_path: Path, cua_train: CuaTrain) -> None:
    shutil.copytree(ROOT / "tests/data/bird/dev_20240627", tmp_path / "dev")
    path = tmp_path / "dev/dev.json"
    records = json.loads(path.read_text())
    records[0]["SQL"] = "SELECT x FROM nowhere"
    records[1]["SQL"] = "SELECT County FROM schools WHERE County = 'none'"
    records[2]["cocte"] = "WITH a AS (SELECT 1 AS x)\n\nSELECT x FROM a"
    path.write_text(json.dumps(records))
    done = cua_train(
        *("sql", "data", "check", str(tmp_path / "dev"), "--split", "dev", "--json"), expected=4
    )
    report = json.loads(done.stdout)
    assert [report[name] for name in ("sound", "fails", "no_rows", "cocte")] == [0, 1, 1, 1]
    assert "question 0 about california_schools: the gold cannot be executed" in done.stderr
    assert "question 1 about california_schools: the gold has no rows" in done.stderr
    assert "question 2 about california_schools: the gold in CoCTE form has other" in done.stderr
    assert "2 golds of" in done.stderr


def test_a_folder_without_data_is_refused(tmp_path: Path, cua_train: CuaTrain) -> None:
    cua_train("sql", "data", "check", str(tmp_path / "none"), expected=2)
    done = cua_train("sql", "data", "check", str(tmp_path), expected=2)
    assert "expected train.json (BIRD)" in done.stderr


def test_the_check_counts_what_the_other_commands_leave_out(
    tmp_path: Path, cua_train: CuaTrain
) -> None:
    bird = tmp_path / "bird"
    shutil.copytree(ROOT / "tests/data/bird/dev_20240627", bird)
    records = json.loads((bird / "dev.json").read_text())
    records += [
        {**records[0], "question_id": 7, "db_id": "gone"},
        {**records[0], "question_id": 8, "SQL": "SELECT x FROM nowhere"},
    ]
    (bird / "dev.json").write_text(json.dumps(records))
    words = ("sql", "data", "check", str(bird), "--split", "dev")
    assert "leave such questions out with --skip-invalid" in cua_train(*words, expected=2).stderr
    done = cua_train(*words, "--skip-invalid", "--json")
    report = json.loads(done.stdout)
    assert (report["questions"], report["sound"], report["left_out"]) == (5, 3, 2)
    assert "1 of 5 questions are left out" in done.stderr
    assert "question 8 about california_schools: the gold cannot be executed" in done.stderr
    asked = ("sql", "eval", "--model-name", "oracle", "--data-path", str(bird))
    assert "'gone' has no file" in cua_train(*asked, expected=2).stderr
    answered = json.loads(cua_train(*asked, "--skip-invalid", "--json").stdout)
    assert answered["questions"] == 3
