"""`cua-train sql rl`, `eval` and `best-of-n` on the command line: what is printed and refused."""

import json
import logging
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from producer.agents.text_to_sql.data.generate import SyntheticSize, write_synthetic
from producer.commands.sql import command
from producer.errors import UsageError

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_synthetic(folder, 0, SyntheticSize(2, 1, 2, ("count",)))
    return folder


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUA_HOME", str(tmp_path / "home"))


def call(*arguments: object, fails: bool = False) -> Result:
    done = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if not fails and done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_a_training_leaves_its_adapter_and_goes_on_by_its_name(data: Path, tmp_path: Path) -> None:
    """The scripted policy has no adapter; its state stands where one would."""
    words: list[Any] = [
        *("rl", "--model-name", "oracle", "--data-path", data, "--training-name", "first"),
        *("--group-size", 2, "--groups-per-batch", 2, "--output-dir", tmp_path / "out"),
        *("--epochs", 1, "--skip-baseline", "--json"),
    ]
    first = json.loads(call(*words).stdout.splitlines()[-1])
    assert (first["steps"], first["status"]) == (2, "completed")
    assert first["output_dir"] == str(tmp_path / "out")
    mark = json.loads((tmp_path / "out/training.json").read_text())
    assert mark["training_name"] == "first"
    longer = call(
        *("rl", "--training-name", "first", "--num-steps", 3, "--json"),
        *("--output-dir", tmp_path / "out"),
    )
    again = json.loads(longer.stdout.splitlines()[-1])
    assert (again["steps"], again["training_id"]) == (3, first["training_id"])


def test_the_printed_command_continues_it_in_a_new_shell(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "producer")
    call(
        *("rl", "--model-name", "oracle", "--data-path", data, "--training-name", "first"),
        *("--group-size", 2, "--groups-per-batch", 2, "--num-steps", 1, "--skip-baseline"),
    )
    (printed,) = [
        message for message in caplog.messages if message.startswith("continue it with: ")
    ]
    home, *words = shlex.split(printed.removeprefix("continue it with: "))
    assert home == f"CUA_HOME={tmp_path / 'home'}"
    assert words[-4:] == ["sql", "rl", "--training-name", "first"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rl", "--omit", "data"), "--omit: requires --config"),
        (("rl", "--model-name", "oracle"), "--data-path: name the data set's folder"),
        (("eval",), "give either --model-name or --training-name"),
        (("best-of-n", "--reward-model", "/", "--temperature", "0"), "--temperature: 0 samples"),
    ],
)
def test_a_mistake_is_named(data: Path, words: tuple[str, ...], message: str) -> None:
    given = words if words[0] == "rl" else (*words, "--data-path", str(data))
    done = call(*given, fails=True)
    assert isinstance(done.exception, UsageError)
    assert message in str(done.exception)


def test_a_training_goes_on_by_its_name_with_a_file_of_fields_and_settings_of_its_own(
    data: Path, tmp_path: Path
) -> None:
    begun: list[Any] = [
        *("rl", "--model-name", "oracle", "--training-name", "first", "--skip-baseline"),
        *(
            "--group-size",
            2,
            "--groups-per-batch",
            2,
            "--core-function",
            "compute_grpo_outcome_advantage",
        ),
    ]
    call(*begun, "--data-path", data, "--num-steps", 1, "--verifier-coef", 2)
    fields = tmp_path / "fields.json"
    fields.write_text('{"num_steps": 2, "verifier_coef": 2}')
    longer = call(*begun, "--config", fields, "--json")
    assert json.loads(longer.stdout.splitlines()[-1])["steps"] == 2
    changed = call(*begun[:5], "--verifier-coef", 3, fails=True)
    assert "begun with other settings: verifier_coef: 2.0 -> 3.0" in str(changed.exception)


def test_a_folder_that_holds_something_else_is_kept(data: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "thesis.txt").write_text("mine")
    done = call(
        *("rl", "--model-name", "oracle", "--data-path", data, "--output-dir", kept), fails=True
    )
    assert "is not empty" in str(done.exception)
    assert [path.name for path in kept.iterdir()] == ["thesis.txt"]
    assert not (tmp_path / "home/runs").exists()


def test_an_evaluation_prints_accuracy_by_difficulty(data: Path) -> None:
    words = ("eval", "--model-name", "oracle", "--data-path", data, "--json")
    found = json.loads(call(*words).stdout)
    assert found["questions"] == found["by_difficulty"]["easy"]["questions"] == 2
    assert found["accuracy"] == found["by_difficulty"]["easy"]["accuracy"]
