"""`cua-train data`: what it writes, reports and refuses."""

import json
from hashlib import md5
from pathlib import Path

import pytest

from tests.support.cua_train import CuaTrain


def test_entries_are_generated_imported_and_prepared(tmp_path: Path, cua_train: CuaTrain) -> None:
    entries, imported, grouped = tmp_path / "entries", tmp_path / "imported", tmp_path / "grouped"
    made = cua_train(
        *("data", "generate", "--num-samples", "22", "--seed", "5", "--json"),
        *("--output", str(entries)),
    )
    report = json.loads(made.stdout)
    assert (report["entries"], report["train"] + report["held_out"]) == (22, 22)
    assert len(report["skills"]) == 22
    assert min(report["skills"].values()) >= 1
    assert report["output"] == str(entries / "entry_dict.json")
    assert len(json.loads((entries / "entry_dict.json").read_text())) == 22

    read = cua_train("data", "import", str(entries), "--output", str(imported), "--json")
    assert json.loads(read.stdout)["solved_by_gold"] == 22
    assert (imported / "entry_dict.json").read_text() == (entries / "entry_dict.json").read_text()

    prepared = cua_train(
        *("data", "prepare", str(imported), "--single-skill", "--target-skill"),
        *("--min-per-skill", "1", "--output", str(grouped), "--json"),
    )
    summary = json.loads(prepared.stdout)
    assert summary["solved_by_gold"] == summary["grouped"]
    counts = summary["skills"]
    assert counts["having_aggregate_calculation"] == 1
    assert {path.name for path in grouped.iterdir()} == set(counts)

    few = cua_train(
        *("data", "prepare", str(imported), "--single-skill", "--min-per-skill", "9"),
        *("--output", str(tmp_path / "few")),
        expected=4,
    )
    assert "no skill has 9 entries that need only it" in few.stderr
    assert "; --target-skill ignores" in few.stderr


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("generate", "--num-samples", "1", "--skills", "selekt"), 2, "Did you mean 'select'?"),
        (
            ("generate", "--num-samples", "1", "--skills", ","),
            2,
            "--skills: name at least one skill",
        ),
        (("generate", "--num-samples", "0"), 2, "--num-samples"),
        (("import", "nowhere"), 2, "no such folder"),
        (("import", "."), 2, "no entry_dict.json"),
        (("prepare", "."), 2, "--single-skill is required"),
    ],
)
def test_mistakes_are_named(
    tmp_path: Path,
    cua_train: CuaTrain,
    words: tuple[str, ...],
    code: int,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = cua_train("data", *words, "--output", str(tmp_path / "new"), expected=code)
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def test_a_hub_that_cannot_be_reached_is_said(
    tmp_path: Path, cua_train: CuaTrain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    output = ("--output", str(tmp_path / "new"))
    done = cua_train("data", "import", "nobody/nothing", *output, expected=5)
    assert "nobody/nothing: the hub's data set cannot be downloaded" in done.stderr


def test_nothing_is_written_into_a_folder_that_holds_something(
    tmp_path: Path, cua_train: CuaTrain
) -> None:
    (tmp_path / "note").write_text("mine")
    words = ("data", "generate", "--num-samples", "1", "--output", str(tmp_path))
    assert "is not empty" in cua_train(*words, expected=2).stderr


def test_a_table_that_cannot_be_built_is_named_with_its_entry(
    tmp_path: Path, cua_train: CuaTrain
) -> None:
    rows = [["x" * 90_000] for _ in range(250)]  # beyond the 16 MB of a session's database
    entry = {
        "instruction": "How many?",
        "table_info": {
            "name": "t",
            "column_info_list": [{"name": "a", "type": "TEXT"}],
            "row_list": rows,
        },
        "answer_info": {"direct": [[250]], "sql": "SELECT count(*) FROM t"},
    }
    (tmp_path / "entry_dict.json").write_text(json.dumps({"big": entry}))
    done = cua_train("data", "import", str(tmp_path), "--output", str(tmp_path / "o"), expected=2)
    assert f"{tmp_path}: entry 'big': table_info: the database cannot be opened" in done.stderr


def test_prepare_names_the_golds_that_their_sql_does_not_give(
    tmp_path: Path, cua_train: CuaTrain
) -> None:
    """Agent-PEFT's generator writes the MD5 of the SQL's text where it reaches no MySQL."""
    sql = "INSERT INTO `t` (`a`) VALUES (2);"
    entry = {
        "instruction": "Add 2.",
        "table_info": {
            "name": "t",
            "column_info_list": [{"name": "a", "type": "INT"}],
            "row_list": [[1]],
        },
        "answer_info": {
            "direct": None,
            "md5": md5(sql.encode(), usedforsecurity=False).hexdigest(),
            "sql": sql,
        },
        "skill_list": ["insert"],
    }
    given = tmp_path / "entry_dict.json"
    given.write_text(json.dumps({"0": entry}))
    done = cua_train(
        *("data", "prepare", "--input_data_path", str(given)),
        *("--output_path", str(tmp_path / "single_skill_tasks.json")),
    )
    assert "entry 0: its SQL gives another table" in done.stderr
    assert "0 of 1 golds equal the result of their SQL" in done.stderr


BEFORE = ("a-file", "held", "held/entry_dict.json")
ENTRIES = ("data", "generate", "--num-samples", "1")
OUTPUTS = {
    "in a file": ("a-file/in", "a-file is a file, not a folder"),
    "a file": ("a-file", "a-file is a file, not a folder"),
    "not empty": ("held", "exists and is not empty"),
    "nowhere": ("/proc/nowhere", "no folder can be made in /proc"),
    "a long name": ("n" * 300, "the name is too long"),
}


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize(
    "words",
    [
        (*ENTRIES, "--seed", "1"),
        ("data", "import", "held"),
        ("data", "prepare", "held", "--single-skill"),
        ("sql", "data", "generate", "--train-databases", "10000"),
        ("redo", "--training-name", "t", "--step", "1"),
    ],
    ids=" ".join,
)
def test_an_output_that_cannot_be_made_is_refused_before_any_work(
    tmp_path: Path,
    cua_train: CuaTrain,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    output: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUA_HOME", str(tmp_path / "home"))
    (tmp_path / "a-file").write_text("mine")
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "entry_dict.json").write_text("{}")
    path, message = OUTPUTS[output]
    refused = cua_train(*words, "--output", path, expected=2)
    assert refused.stderr.startswith("error: --output: ")
    assert message in refused.stderr
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [*BEFORE]


@pytest.mark.parametrize(
    ("words", "range_"),
    [
        (("data", "generate", "--num-samples", "100001"), "1<=x<=100000"),
        (("sql", "data", "generate", "--train-databases", "10001"), "1<=x<=10000"),
        (("sql", "data", "generate", "--dev-databases", "10001"), "1<=x<=10000"),
    ],
)
def test_more_than_memory_holds_is_refused(
    tmp_path: Path, cua_train: CuaTrain, words: tuple[str, ...], range_: str
) -> None:
    refused = cua_train(*words, "--output", str(tmp_path / "out"), expected=2)
    assert range_ in refused.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", ["./nowhere", "../nowhere", "~/nowhere", "/nowhere/x", "a/b/c"])
def test_a_path_that_is_not_there_is_not_asked_of_the_hub(
    tmp_path: Path, cua_train: CuaTrain, given: str
) -> None:
    missing = cua_train("data", "import", given, "--output", str(tmp_path / "out"), expected=2)
    assert "there is no such folder" in missing.stderr


def test_agent_pefts_flags_and_a_file_that_exists(tmp_path: Path, cua_train: CuaTrain) -> None:
    file = tmp_path / "generated" / "entry_dict.json"
    words = ("data", "generate", "--num_samples", "2", "--output_path", str(file), "--json")
    one = (*words, "--random_seed", "1", "--skills", "insert", "update")
    report = json.loads(cua_train(*one).stdout)
    assert report["skills"]["insert"] == report["skills"]["update"] == 1
    written = file.read_bytes()
    cua_train(*one)
    other = (*words, "--random_seed", "2")
    refused = cua_train(*other, expected=2)
    assert f"{file} exists with other content; choose another" in refused.stderr
    assert "replace it with --overwrite" in refused.stderr
    assert file.read_bytes() == written
    cua_train(*other, "--overwrite")
    assert file.read_bytes() != written
    again = tmp_path / "again"
    cua_train("data", "import", str(file), "--output_dir", str(again))
    assert (again / "entry_dict.json").read_bytes() == file.read_bytes()


def test_a_strangers_file_is_never_replaced(tmp_path: Path, cua_train: CuaTrain) -> None:
    file = tmp_path / "notes.json"
    file.write_text('{"my": {"notes": 1}}')
    words = ("data", "generate", "--num-samples", "1", "--output", str(file))
    assert f"{file} exists; choose another file" in cua_train(*words, expected=2).stderr
    refused = cua_train(*words, "--overwrite", expected=2)
    assert "exists and has no entries of DB Bench; choose another file" in refused.stderr
    assert file.read_text() == '{"my": {"notes": 1}}'
