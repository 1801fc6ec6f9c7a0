"""A command that is refused leaves nothing: no training, no folder, no file, no event."""

import json
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from producer.agents.desktop.programs import check_programs
from producer.config import read_config
from producer.errors import StopRequestedError, UnreachableError
from producer.log.kafka_contact import wait_for_kafka
from producer.training.run import run
from schemas.installation import read_installation
from tests.support.cua_train import CuaTrain

ORACLE = ("--model-name", "oracle")
SMALL = (
    *(*ORACLE, "--num-steps", "1", "--group-size", "2", "--groups-per-batch", "1"),
    *("--eval-episodes", "2", "--no-monitor"),
)


def custom(**changes: object) -> str:
    task = {
        "task_id": "mine",
        "description": "Turn wifi on.",
        "validation_query": "wifi_enabled",
        "expected": "True",
        **changes,
    }
    return json.dumps({"source_type": "custom", "custom_tasks": [task]})


UNJUDGED = json.dumps({"source_type": "ids", "task_ids": ["train_66_pin_app_to_home"]})
UNKNOWN_APP = custom(setup=["am start -n com.spotify.music/.Main"])
MISTAKES: dict[str, tuple[tuple[str, ...], int, str]] = {
    "a flag": (("--grup-size", "3"), 2, "no such option"),
    "a value": (("--group-size", "0"), 2, "group_size: 0 is out of range"),
    "fields together": (("--skip-baseline", "--baseline-only"), 2, "contradicts skip_baseline"),
    "two folders": (
        ("--log-path", "a", "--log-dir", "b"),
        2,
        "log_dir: log_path already names the training's folder",
    ),
    "a name": (("--training-name", "a/b"), 2, "training_name: 'a/b' contains '/'"),
    "a name in a file": (("--config", "name.json"), 2, "training_name: '../x' starts with '.'"),
    "a file that is missing": (("--config", "none.toml"), 2, "cannot be read"),
    "a field twice": (("--config", "twice.json"), 2, "'seed' is given twice"),
    "unknown tasks": (("--tasks", '{"source_type": "ids", "task_ids": ["x"]}'), 2, "'x'"),
    "no tasks file": (("--tasks", '{"source_type": "file", "file_path": "x"}'), 2, "cannot read"),
    "tasks nobody can judge": ((*ORACLE, "--tasks", UNJUDGED), 2, "have no validator"),
    "eval tasks nobody can judge": (
        (*ORACLE, "--eval-tasks", UNJUDGED),
        2,
        "have no validator",
    ),
    "a reward that raises": (
        (*ORACLE, "--reward", "my_reward:raises"),
        2,
        "my_reward.py line 2, in raises); it was tried with a solved episode of task ",
    ),
    "a reward that raises where the task is not solved": (
        (*ORACLE, "--reward", "my_reward:raises_late"),
        2,
        "raised ZeroDivisionError: division by zero (",
    ),
    "an unknown query": ((*ORACLE, "--tasks", custom(validation_query="x")), 2, "unknown device"),
    "an answer that a query never gives": (
        (*ORACLE, "--tasks", custom(expected="yes")),
        2,
        "tasks.custom_tasks[0].expected: wifi_enabled answers True or False, never 'yes'",
    ),
    "fewer answers than joined queries": (
        (*ORACLE, "--tasks", custom(validation_query="wifi_enabled & current_app")),
        2,
        "expected: 1 answer ('True') for 2 queries ('wifi_enabled & current_app'); give one for",
    ),
    "an app that the phone does not have, in joined queries": (
        (
            *(*ORACLE, "--tasks"),
            custom(
                validation_query="wifi_enabled & current_app", expected="True & com.spotify.music"
            ),
        ),
        2,
        "tasks.custom_tasks[0].expected: current_app: the simulated phone has no 'com.spotify.mus",
    ),
    "an app that the phone does not have": (
        (*ORACLE, "--tasks", custom(validation_query="current_app", expected="com.spotify.music")),
        2,
        "tasks.custom_tasks[0].expected: current_app: the simulated phone has no 'com.spotify.mus",
    ),
    "an unknown app": (
        (*ORACLE, "--tasks", UNKNOWN_APP),
        2,
        "tasks.custom_tasks[0]: set-up of mine failed",
    ),
    "an unknown app to evaluate": (
        (*ORACLE, "--eval-tasks", UNKNOWN_APP),
        2,
        "eval_tasks.custom_tasks[0]: set-up of mine failed",
    ),
    "a policy that is none": (("--model-name", "./empty", "--tasks", custom()), 3, "empty"),
    "a policy folder that is missing": (("--model-name", "./none"), 2, "there is no folder"),
    "an adapter that is missing": (("--load-checkpoint-path", "none"), 2, "there is no folder"),
    "an adapter for the oracle": ((*ORACLE, "--load-checkpoint-path", "empty"), 2, "no adapter"),
    "a folder below a file": (("--log-path", "a file/x"), 2, "--log-path: "),
    "a parent below a file": (("--log-dir", "a file/x"), 2, "--log-dir: "),
    "states below a file": (("--log-path", "half"), 2, "--log-path: "),
}
VARIABLES: dict[str, tuple[dict[str, str], int, str]] = {
    "home below a file": ({"CUA_HOME": "a file/x"}, 2, "CUA_HOME: "),
    "blobs below a file": ({"CUA_BLOBS": "a file/x"}, 2, "CUA_BLOBS: "),
    "no such blob store": ({"CUA_BLOBS": "nothing://x"}, 5, "the blob store nothing://x"),
}


NOT_FOR_THE_DEMO: dict[str, tuple[tuple[str, ...], str]] = {
    "an adapter": (("--load-checkpoint-path", "adapter"), "belongs to a base"),
    "targets that match nothing": (("--target-modules", '["q_porj"]'), "q_porj"),
    "a device": (("--device", "cuda:7"), "device: cuda:7 is not on this machine"),
    "completions beyond its context": (
        ("--max-tokens", "5000", "--max-concurrent-rollouts", "2"),
        "max_tokens: policy 'demo' takes 4,096 tokens",
    ),
    "more than the memory": (
        ("--max-turns", "1000000", "--max-concurrent-rollouts", "100"),
        "policy 'demo' does not fit into memory",
    ),
}
"""What a demo policy that is made already refuses by opening it."""


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "empty").mkdir(parents=True)
    (work / "a file").touch()
    (work / "half").mkdir()
    (work / "half" / "state").touch()
    (work / "my_reward.py").write_text(
        "def raises(outcome):\n    return outcome.sucess\n"
        "def raises_late(outcome):\n    return 1 / outcome.success\n"
    )
    (work / "name.json").write_text('{"training_name": "../x"}')
    (work / "twice.json").write_text('{"seed": 1, "seed": 2}')
    return work


@pytest.fixture
def call(work: Path, monkeypatch: pytest.MonkeyPatch, cua_train: CuaTrain) -> Iterator[CuaTrain]:
    """The command line in this process, in a folder and with a home of its own."""
    monkeypatch.chdir(work)
    monkeypatch.setenv("CUA_HOME", "home")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield cua_train
    sys.modules.pop("my_reward", None)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_leaves_a_new_machine_as_it_was(work: Path, call: CuaTrain, mistake: str) -> None:
    words, code, message = MISTAKES[mistake]
    before = listing(work)
    done = call("run", *words, expected=code)
    assert message in done.stderr
    assert done.stdout == ""
    assert listing(work) == before


def test_a_desktop_without_its_programs_names_them_and_how_to_install_them(
    work: Path, call: CuaTrain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(work))
    monkeypatch.setattr("producer.agents.desktop.agent._check_desktop", check_programs)
    before = listing(work)
    done = call("run", "--environment", "desktop", *SMALL, expected=2)
    assert (
        "needs Xvfb, jwm, l3afpad, galculator, pcmanfm; on Debian or Ubuntu: sudo apt-get"
        in done.stderr
    )
    assert listing(work) == before


def test_the_default_policy_is_refused_on_a_desktop(
    work: Path, call: CuaTrain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("producer.agents.desktop.agent._check_desktop", lambda: None)
    before = listing(work)
    done = call("run", "--environment", "desktop", expected=2)
    assert "there is no policy 'demo' for environment desktop" in done.stderr
    assert listing(work) == before


@pytest.mark.parametrize("mistake", NOT_FOR_THE_DEMO)
def test_what_does_not_fit_the_demo_policy_is_refused_before_it_is_made(
    work: Path, call: CuaTrain, mistake: str
) -> None:
    pytest.importorskip("torch")
    write_adapter(work / "adapter")
    words, message = NOT_FOR_THE_DEMO[mistake]
    before = listing(work)
    done = call("run", *words, expected=2)
    assert message in done.stderr
    assert done.stdout == ""
    assert listing(work) == before


def write_adapter(folder: Path) -> None:
    """With the files that are read before there is a policy to load it into."""
    folder.mkdir()
    config = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"]}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    (folder / "adapter_model.safetensors").touch()


@pytest.mark.parametrize("command", ["run", "evaluate"])
@pytest.mark.parametrize("variable", VARIABLES)
def test_a_machine_that_cannot_keep_a_run_is_left_as_it_was(
    work: Path, call: CuaTrain, monkeypatch: pytest.MonkeyPatch, variable: str, command: str
) -> None:
    environ, code, message = VARIABLES[variable]
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    before = listing(work)
    done = call(command, *ORACLE, expected=code)
    assert message in done.stderr
    assert done.stdout == ""
    assert listing(work) == before


@pytest.mark.parametrize(
    "mistake", ["an unknown app", "a policy that is none", "a folder below a file", "two folders"]
)
def test_a_mistake_leaves_a_used_home_as_it_was(work: Path, call: CuaTrain, mistake: str) -> None:
    call("run", "--training-name", "one", *SMALL)
    before, count = listing(work), num_events(work)
    words, code, _ = MISTAKES[mistake]
    call("run", *words, expected=code)
    assert listing(work) == before
    assert num_events(work) == count


def num_events(work: Path) -> int:
    with closing(sqlite3.connect(work / "home" / "log" / "log.sqlite3")) as log:
        (count,) = log.execute("SELECT count(*) FROM records").fetchone()
    return int(count)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--eval-tasks", UNJUDGED), "have no validator"),
        (("--eval-tasks", custom(expected="yes")), "eval_tasks.custom_tasks[0].expected: wifi_ena"),
        (("--reward", "my_reward:raises"), "my_reward.py line 2, in raises); it was tried with a"),
    ],
)
def test_an_evaluation_that_cannot_succeed_leaves_nothing(
    work: Path, call: CuaTrain, words: tuple[str, ...], message: str
) -> None:
    before = listing(work)
    assert message in call("evaluate", *ORACLE, *words, expected=2).stderr
    assert listing(work) == before


def test_kafka_that_does_not_answer_leaves_nothing(tmp_path: Path) -> None:
    environ = {"CUA_HOME": str(tmp_path / "home"), "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    installation = read_installation(environ)
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1"):
        wait_for_kafka(installation, 0.0)
    stop = threading.Event()
    stop.set()
    with pytest.raises(StopRequestedError):
        run(read_config({"model_name": "oracle"}), installation=installation, stop=stop)
    assert listing(tmp_path) == []
