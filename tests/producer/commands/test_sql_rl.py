"""`cua-train sql rl`, `eval` and `best-of-n` on the command line: what is printed and refused."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from producer.agents.text_to_sql.data.generate import SyntheticSize, write_synthetic
from producer.errors import UsageError
from tests.support.cua_train import CuaTrain, Done

pytest.importorskip("torch")

Call = Callable[..., Done]
ORACLE = ("rl", "--model-name", "oracle")
FIRST = (*ORACLE, "--training-name", "first")
SMALL = ("--group-size", 2, "--groups-per-batch", 2, "--skip-baseline")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_synthetic(folder, 0, SyntheticSize(2, 1, 2, ("count",)))
    return folder


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cua_train: CuaTrain) -> Call:
    """`cua-train sql` with a home of its own."""
    monkeypatch.setenv("CUA_HOME", str(tmp_path / "home"))

    def sql(*words: object, expected: int = 0) -> Done:
        return cua_train("sql", *map(str, words), expected=expected)

    return sql


def summary(done: Done) -> Any:
    return json.loads(done.stdout.splitlines()[-1])


def test_a_training_leaves_its_adapter_and_goes_on_by_its_name(
    data: Path, tmp_path: Path, call: Call
) -> None:
    """The scripted policy has no adapter; its state stands where one would."""
    output = ("--output-dir", tmp_path / "out", "--json")
    first = summary(call(*FIRST, *SMALL, "--data-path", data, "--epochs", 1, *output))
    assert (first["steps"], first["status"]) == (2, "completed")
    assert first["output_dir"] == str(tmp_path / "out")
    mark = json.loads((tmp_path / "out/training.json").read_text())
    assert mark["training_name"] == "first"
    again = summary(call("rl", "--training-name", "first", "--num-steps", 3, *output))
    assert (again["steps"], again["training_id"]) == (3, first["training_id"])


def test_the_same_command_with_its_folders_continues_without_a_name(
    data: Path, tmp_path: Path, call: Call
) -> None:
    folders = ("--log-path", tmp_path / "log", "--output-dir", tmp_path / "out", "--json")
    command = (*ORACLE, *SMALL, "--data-path", data, *folders)
    first = summary(call(*command, "--num-steps", 1))
    again = summary(call(*command, "--num-steps", 2))
    assert (again["steps"], again["training_id"]) == (2, first["training_id"])
    other = call(*command, "--num-steps", 2, "--log-path", tmp_path / "new", expected=2)
    assert f"holds the result of training '{first['training_name']}'" in other.stderr


def test_the_printed_command_continues_it_in_a_new_shell(
    data: Path, tmp_path: Path, call: Call
) -> None:
    lines = call(*FIRST, *SMALL, "--data-path", data, "--num-steps", 1).stderr.splitlines()
    (printed,) = [line for line in lines if line.startswith("continue it with: ")]
    env, home, *words = shlex.split(printed.removeprefix("continue it with: "))
    assert env == "env"
    assert home == f"CUA_HOME={tmp_path / 'home'}"
    assert words[-4:] == ["sql", "rl", "--training-name", "first"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (ORACLE, "--data-path: name the data set's folder"),
        (("eval",), "give either --model-name or --training-name"),
        (("best-of-n", "--reward-model", "/", "--temperature", "0"), "--temperature: 0 samples"),
    ],
)
def test_a_mistake_is_named(data: Path, words: tuple[str, ...], message: str, call: Call) -> None:
    given = words if words[0] == "rl" else (*words, "--data-path", data)
    assert message in call(*given, expected=2).stderr


def test_a_training_goes_on_by_its_name_with_a_file_of_fields_and_settings_of_its_own(
    data: Path, tmp_path: Path, call: Call
) -> None:
    begun = (*FIRST, *SMALL, "--core-function", "compute_grpo_outcome_advantage")
    call(*begun, "--data-path", data, "--num-steps", 1, "--verifier-coef", 2)
    fields = tmp_path / "fields.json"
    fields.write_text('{"num_steps": 2, "verifier_coef": 2}')
    assert summary(call(*begun, "--config", fields, "--json"))["steps"] == 2
    changed = call(*FIRST, "--verifier-coef", 3, expected=2)
    assert "begun with other settings: verifier_coef: 2.0 -> 3.0" in changed.stderr


def test_a_second_algorithm_of_one_file_is_a_second_training_named_so(
    data: Path, tmp_path: Path, call: Call
) -> None:
    file = tmp_path / "grpo.yaml"
    file.write_text("algorithm: {adv_estimator: grpo}\ntrainer: {experiment_name: ours}\n")
    words = [*ORACLE, *SMALL, "--config", file, "--data-path", data, "--num-steps", 1, "--json"]
    other = [*words, "--core_function", "compute_token_wise_advantage"]
    names = [summary(call(*given))["training_name"] for given in (words, other, words, other)]
    assert names == ["ours", "ours-token-wise"] * 2


def test_a_folder_that_holds_something_else_is_kept(data: Path, tmp_path: Path, call: Call) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "thesis.txt").write_text("mine")
    done = call(*ORACLE, "--data-path", data, "--output-dir", kept, expected=2)
    assert "is not empty" in done.stderr
    assert [path.name for path in kept.iterdir()] == ["thesis.txt"]
    assert not (tmp_path / "home/runs").exists()


def test_an_evaluation_prints_accuracy_by_difficulty(data: Path, call: Call) -> None:
    found = json.loads(call("eval", "--model-name", "oracle", "--data-path", data, "--json").stdout)
    assert found["questions"] == found["by_difficulty"]["easy"]["questions"] == 2
    assert found["accuracy"] == found["by_difficulty"]["easy"]["accuracy"]


@pytest.mark.parametrize(
    ("words", "computes"),
    [
        (("eval",), "producer.training.manual_evaluation.load_policy"),
        (("best-of-n", "--reward-model", "."), "producer.training.manual_evaluation.load_policy"),
        (("label-steps", "--output", "labels.json"), "producer.fine_tuning.step_labels.run"),
        (("rl",), "producer.training.run.run"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_every_command_that_computes_a_policy_is_told_its_dtype(
    data: Path,
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    computes: str,
) -> None:
    dtypes: list[str] = []

    def capture(config: Any, *_: object, **_named: object) -> None:
        dtypes.append(config.dtype)
        message = "enough"
        raise UsageError(message)

    monkeypatch.setattr(computes, capture)
    policy = ("--model-name", data, "--data-path", data)
    for dtype in ("bfloat16", "float32"):
        assert "enough" in call(*words, *policy, "--dtype", dtype, expected=2).stderr
    assert dtypes == ["bfloat16", "float32"]
