"""What `cua-train` answers to a user's mistake: one message, the exit code, nothing started."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from producer.commands.given_fields import given_fields, read_config_file
from producer.config import read_config
from producer.errors import CuaTrainError, UsageError
from producer.training import preflight as writable
from producer.training.preflight import check_writable
from tests.support.cua_train import CuaTrain
from tests.support.forked_command import run_command

Failed = Callable[..., str]
DEEP = "[" * 300 + "]" * 300
DIGITS = "1" * 5_000


@pytest.fixture
def failed(cua_train: CuaTrain) -> Failed:
    """Runs a command that fails; gives what it printed after `error: `."""

    def run(*words: str, code: int = 2) -> str:
        shown = cua_train(*words, expected=code)
        assert shown.stdout == ""
        assert shown.stderr.startswith("error: ")
        return shown.stderr.removeprefix("error: ").rstrip("\n")

    return run


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--grup-size", "3"], "no such option '--grup-size'. Did you mean '--group-size'"),
        (["run", "--lr", "1e-4"], "no such option '--lr'. Did you mean '--learning-rate'? See `"),
        (["run", "--lr=1e-4"], "no such option '--lr'. Did you mean '--learning-rate'? See `"),
        (["run", "lr=1e-4"], "no such setting 'lr'. Did you mean 'learning_rate'? See `"),
        (["run", "gruop_size=3"], "no such setting 'gruop_size'. Did you mean 'group_size'? See `"),
        (["run", "--algorithm", "grpo"], "Did you mean '--advantage'? See `"),
        (["run", "--per_device_train_batch_size", "2"], "Did you mean '--groups-per-batch'?"),
        (["run", "--epochs", "3"], "Did you mean '--num-steps'?"),
        (["sql", "rl", "--lr", "1e-4"], "Did you mean '--learning-rate'?"),
        (["run", "--group-size", "x"], "'x' is not a valid integer. See `"),
        (["run", "--group-size", "0"], "group_size: 0 is out of range; it must be at least 1"),
        (
            ["run", "--loss-fn", "dpo"],
            "'dpo' is not one of 'importance_sampling', 'reinforce', 'ppo', 'cispo', 'gspo'.",
        ),
        (["run", "--training-name", "../x"], "training_name: '../x' starts with '.'; use letters"),
        (["run", "-v", "-q"], "--verbose and --quiet exclude each other"),
        (["trainings", "note", "a", "b\udcff"], "'b\\udcff' is not UTF-8 text; write it in UTF-8"),
        (["rum"], "no such command 'rum'. Did you mean 'run'? See `"),
        (["evaluate", "--training-name", "a/b"], "--training-name: 'a/b' contains '/'; use"),
        (["evaluate", "--training-name", "a", "--model-name", "b"], "give either --training-name"),
        (
            ["serve", "--model-name", "demo", "--device", "mps"],
            "device: unsupported device 'mps'; use",
        ),
        (["serve", "--model-name", "oracle"], "oracle is scripted and completes no text, so it"),
        (["run", "--environment", "x"], "'x' is not one of 'android', 'dbbench', 'text_to_sql'"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_message(
    failed: Failed, words: list[str], message: str
) -> None:
    shown = failed(*words)
    assert message in shown
    assert "\n" not in shown


@pytest.mark.parametrize(
    "words",
    [
        ("doctor", "{missing}"),
        ("convert", "{missing}"),
        ("run", "--config", "{missing}"),
        ("run", "--tasks", "{missing}"),
        ("run", "--model-name", "{missing}", "--tasks", '{"source_type": "demo_all"}'),
        ("tasks", "check", "--tasks", "{missing}"),
        ("data", "import", "{missing}", "--output", "out"),
        ("data", "prepare", "{missing}", "--single-skill", "--output", "out"),
        ("serve", "--model-name", "{missing}"),
        ("sql", "sft", "--model-name", "oracle", "--data-path", "{missing}"),
        ("sql", "rl", "--model-name", "oracle", "--data-path", "{missing}"),
        ("sql", "eval", "--model-name", "oracle", "--data-path", "{missing}"),
        ("sql", "eval", "--model-name", "{missing}", "--data-path", "{missing}"),
        ("sql", "data", "check", "{missing}"),
    ],
)
def test_an_input_that_is_missing_is_a_mistake_of_the_command(
    failed: Failed, tmp_path: Path, words: tuple[str, ...]
) -> None:
    missing = str(tmp_path / "missing")
    assert missing in failed(*(word.replace("{missing}", missing) for word in words))


def test_a_training_that_does_not_exist_is_not_found_and_the_nearest_is_named(
    failed: Failed, tmp_path: Path
) -> None:
    (tmp_path / "cua-home" / "runs" / "first-try").mkdir(parents=True)
    shown = failed("evaluate", "--training-name", "fist-try", code=3)
    assert shown.startswith("there is no training 'fist-try' in ")
    assert shown.endswith(" Did you mean 'first-try'?")


@pytest.mark.parametrize(
    ("home", "reason"),
    [
        ("a file", "is a file, not a folder"),
        ("a file/below", "is a file, not a folder"),
        ("/proc/cua", "no folder can be made in /proc"),
        ("x" * 300, "the name is too long"),
    ],
)
def test_an_impossible_home_or_log_path_is_refused_before_anything_starts(
    failed: Failed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: str, reason: str
) -> None:
    (tmp_path / "a file").touch()
    folder = str(tmp_path / home)
    assert failed("run", "--log-path", folder).startswith(f"--log-path: {folder} cannot be used: ")
    monkeypatch.setenv("CUA_HOME", folder)
    shown = failed("run")
    assert shown.startswith(f"CUA_HOME: {folder} cannot be used: ")
    assert reason in shown
    assert reason in failed("evaluate")


def test_tasks_that_do_not_exist_are_refused_before_anything_starts(
    failed: Failed, tmp_path: Path
) -> None:
    source = json.dumps({"source_type": "ids", "task_ids": ["no_such_task"]})
    for flag in ("--tasks", "--eval-tasks"):
        assert "no_such_task" in failed("run", flag, source)
    assert not (tmp_path / "cua-home").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(UsageError, match=f"no permission to write in {tmp_path}"):
            check_writable(tmp_path / "home", "CUA_HOME")
    finally:
        tmp_path.chmod(0o700)


def test_a_full_disk_is_a_failure_not_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(writable, "TemporaryFile", full)
    with pytest.raises(CuaTrainError, match=r"the disk of .* is full; free some space") as error:
        check_writable(tmp_path, "CUA_HOME")
    assert error.value.exit_code == 1


def test_a_check_leaves_nothing_behind(tmp_path: Path) -> None:
    check_writable(tmp_path / "home", "CUA_HOME")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", '{"seed": 1,\n "x" 2}', "is not valid JSON, line 2 column 6: expecting ':'"),
        ("a.toml", "seed = 1\nx = [\n", "is not valid TOML: "),
        ("a.toml", "seed = 1\nx 2\n", r"line 2, column 3"),
        ("a.txt", "seed = 1", r"is not valid JSON, .*; name a TOML file \*\.toml, a YAML file"),
        ("a.json", "[1]", "must hold an object of fields"),
        ("a.yaml", "seed: 1\nx: [1\n", "is not valid YAML: line 3 column 1: "),
        ("a.yml", "- 1", "must hold an object of fields"),
        ("a.yaml", "", "must hold an object of fields"),
        ("a.yaml", "1: 2", "must hold an object of fields"),
        ("a.yaml", "seed: !!python/object:os.system {}", "is not valid YAML: line 1 column 7"),
        ("a.yaml", "seed: 1\n...\nseed: 2", "is not valid YAML: "),
        ("a.json", '{"seed": 1, "seed": 2}', "'seed' is given twice in one object; remove one"),
        ("a.yaml", "seed: 1\nseed: 2", "line 2 column 1: found duplicate key seed"),
        ("a.toml", "seed = 1\nseed = 2", "is not valid TOML: "),
        ("a.json", b"\xff\xfe", "is not a text file in UTF-8"),
        ("a.json", "[" * 100_000, "a.json: nested too deeply"),
        *(("a.json", f'{{"a": {DEEP}}}', "nested too deeply; at most 100"),),
        *(("a.toml", f"a = {DEEP}", "nested too deeply"), ("a.yml", f"a: {DEEP}", "too deeply")),
        ("a.json", f'{{"seed": {DIGITS}}}', "a.json: a number has more than 4,300 digits"),
        ("a.toml", f"seed = {DIGITS}", "is not valid TOML: "),
    ],
)
def test_a_config_file_that_cannot_be_read_is_named_with_the_place(
    tmp_path: Path, name: str, text: str | bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError, match=message) as error:
        read_config_file(path)
    assert str(path) in str(error.value)


def test_a_config_file_that_is_missing_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.json cannot be read: No such file"):
        read_config_file(tmp_path / "none.json")


def test_the_name_of_a_file_of_tasks_is_a_task_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.csv").touch()
    (tmp_path / "config.json").write_text('{"tasks": "my.csv"}')
    source = {"source_type": "file", "file_path": str(tmp_path / "my.csv")}
    assert given_fields({"eval_tasks": "my.csv"}, Path("config.json")) == {
        "tasks": source,
        "eval_tasks": source,
    }


@pytest.mark.parametrize("text", ["x" * 300, "~nobody/my.csv", "a\0b"])
def test_tasks_that_cannot_be_the_name_of_a_file_are_no_valid_json(text: str) -> None:
    with pytest.raises(UsageError, match="is neither an existing file nor valid JSON"):
        given_fields({"tasks": text}, None)


def test_a_name_that_is_given_twice_in_a_flag_is_refused() -> None:
    """The last one would be taken in silence."""
    text = '[{"source_type": "ids", "task_ids": ["a"], "task_ids": ["b"]}]'
    with pytest.raises(UsageError, match=r"^--eval-tasks: 'task_ids' is given twice in one object"):
        given_fields({"eval_tasks": text}, None)


@pytest.mark.parametrize(("value", "reason"), [(DEEP, "nested too"), (DIGITS, "a number has more")])
def test_tasks_that_no_event_can_hold_are_refused(value: str, reason: str) -> None:
    text = f'{{"source_type": "custom", "custom_tasks": {value}}}'
    with pytest.raises(UsageError, match=f"^--tasks: {reason}"):
        given_fields({"tasks": text}, None)


def test_tasks_that_are_no_json_get_an_example() -> None:
    with pytest.raises(UsageError) as error:
        given_fields({"tasks": "demo_training"}, None)
    assert str(error.value) == (
        "--tasks: 'demo_training' is neither an existing file nor valid JSON, line 1 column 1:"
        ' expecting value; for example --tasks \'{"source_type": "demo_training"}\''
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"learning_rate": 1e-5, "tasks": [{"source_type": "demo_all"}]}'),
        ("a.toml", 'learning_rate = 1e-5\ntasks = [{source_type = "demo_all"}]'),
        ("a.yaml", "learning_rate: 1e-5\ntasks:\n- source_type: demo_all\n"),
        ("a.YML", "{learning_rate: 1.0e-5, tasks: [{source_type: demo_all}]}"),
    ],
)
def test_a_config_file_says_the_same_in_every_format(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    config = read_config(given_fields({}, tmp_path / name))
    assert config.learning_rate == 0.00001
    assert config.tasks == [{"source_type": "demo_all"}]


def test_a_date_in_yaml_is_text(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("training_name: 2026-01-31")
    assert read_config_file(tmp_path / "a.yaml").fields == {"training_name": "2026-01-31"}


def test_a_config_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf" + b'{"seed": 1}')
    assert read_config_file(path).fields == {"seed": 1}


@pytest.mark.parametrize("name", ["model_name", "load_checkpoint_path"])
def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"{name}: there is no folder .*missing"):
        given_fields({name: str(tmp_path / "missing")}, None)


def test_flags_win_over_the_file_and_paths_become_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy").mkdir()
    (tmp_path / "a.json").write_text('{"seed": 1, "model_name": "policy", "log_path": "runs"}')
    sources = json.dumps([{"source_type": "file", "file_path": "x"}, {"source_type": "demo_all"}])
    given = given_fields({"seed": 2, "tasks": sources, "group_size": None}, Path("a.json"))
    assert given == {
        "seed": 2,
        "model_name": str(tmp_path / "policy"),
        "log_path": tmp_path / "runs",
        "tasks": [
            {"source_type": "file", "file_path": str(tmp_path / "x")},
            {"source_type": "demo_all"},
        ],
    }
    assert given_fields({"model_name": "org/policy"}, None) == {"model_name": "org/policy"}


@pytest.mark.internal_error
def test_what_nobody_foresaw_asks_for_a_report_and_shows_the_traceback_on_request(
    tmp_path: Path,
) -> None:
    small = ("--model-name", "oracle", "--group-size", "2", "--groups-per-batch", "1")
    words = ("run", "--training-name", "a", *small, "--eval-episodes", "2", "--no-monitor")
    assert run_command("producer", *words, "--num-steps", "1").returncode == 0
    for state in (tmp_path / "cua-home" / "runs" / "a" / "state").rglob("scripted.json"):
        state.write_text("{")
    more = (*words, "--num-steps", "2")
    done = run_command("producer", *more)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: internal error: JSONDecodeError: Expecting")
    assert last.endswith("; please report it. CUA_TRACEBACK=1 shows the traceback")
    done = run_command("producer", *more, environ={**os.environ, "CUA_TRACEBACK": "1"})
    assert "Traceback (most recent call last)" in done.stderr
