"""The command that a run prints continues that run, whatever it was begun with, from any folder."""

import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from consumers.embedded_postgres.postgres import stop_running
from consumers.monitor.server import DEFAULT_PORT
from producer.resume.run_folder import MOVED_TO
from schemas.ids import training_id
from tests.support.forked_command import run_command

NAME = "训练-1"
SMALL = (
    *("run", "--model-name", "oracle", "--group-size", "2", "--groups-per-batch", "1"),
    *("--eval-episodes", "2", "--no-monitor", "--json"),
)
ONE_STEP = (*SMALL, "--training-name", NAME, "--num-steps", "1")
CONTINUE = re.compile(r"(?:^|; )continue (?:it )?with: (.*)$", re.MULTILINE)
BARE = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
BIN = Path(sys.executable).parent
PROGRAM = re.compile(r"('[^']*cua-train'|\S*cua-train) (?=run )")
"""Quoted where its folder has a space."""
RECORDER = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"


@dataclass(frozen=True)
class Work:
    """A folder `work` below a person's home, with variables of the environment."""

    home: Path
    variables: dict[str, str]

    @property
    def folder(self) -> Path:
        return self.home / "work"

    @property
    def environ(self) -> dict[str, str]:
        return {**BARE, "HOME": str(self.home), **self.variables}

    def call(self, *words: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        self.folder.mkdir(exist_ok=True)
        done = run_command("producer", *words, folder=self.folder, environ=self.environ)
        assert done.returncode == code, done
        return done


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path, {"CUA_HOME": "it's a home"})


def printed(done: "subprocess.CompletedProcess[str]") -> str:
    """The command that continues the run."""
    found = CONTINUE.search(done.stderr)
    assert found is not None, done.stderr
    return found[1]


def summary_of(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return summary


def call(
    words: Sequence[str], folder: Path, environ: dict[str, str]
) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        words,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done


def in_a_new_shell(command: str, home: Path, shell: str = "sh") -> str:
    """What a command answers as typed by somebody who has a PATH and a home, in another folder."""
    elsewhere = home / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    done = call([shell, "-c", command], elsewhere, {**BARE, "HOME": str(home)})
    assert list(elsewhere.iterdir()) == [], "nothing is made where it is typed"
    return done.stdout


def continued(command: str, home: Path, shell: str = "sh") -> dict[str, Any]:
    """The summary of a printed command as typed in a new shell: a fork has its words and variables.

    `test_however_the_program_was_called` runs the program that it names.
    """
    recorder = shlex.join([sys.executable, "-S", "-c", RECORDER])
    shown = in_a_new_shell(PROGRAM.sub(lambda _: f"{recorder} ", command), home, shell)
    words, environ = json.loads(shown)
    done = run_command("producer", *words, folder=home / "elsewhere", environ=environ)
    assert done.returncode == 0, done
    assert list((home / "elsewhere").iterdir()) == [], "nothing is made where it is typed"
    return summary_of(done)


HOMES = {
    "unset": {},
    "relative": {"CUA_HOME": "homes/a"},
    "quoted": {"CUA_HOME": 'it\'s "my" $HOME & `x`'},
    "xdg": {"XDG_DATA_HOME": "data"},
    "blobs": {"CUA_BLOBS": "my blobs"},
}
FLAGS = {
    "log path": ("--log-path", "my runs/it's one"),
    "log dir": ("--log-dir", "my runs"),
    "config": ("--config", "run.toml"),
    "checkpoints": ("--save-every", "0", "--eval-every", "0", "--takeover"),
    "verbose after": ("-v",),
    "json": ("--json", "--log-format", "text"),
    "overwrite": ("--behavior-if-log-dir-exists", "overwrite"),
}


@pytest.mark.parametrize("home", HOMES)
def test_from_another_folder_in_a_newcomers_shell(tmp_path: Path, home: str) -> None:
    work = Work(tmp_path, HOMES[home])
    begun = work.call(*ONE_STEP, *(FLAGS["log path"] if home == "quoted" else ()))
    assert summary_of(begun)["training_id"] == str(training_id(NAME))
    evaluated = work.call("evaluate", "--training-name", NAME, "--episodes", "2", "--json")
    assert json.loads(evaluated.stdout)["episodes"] == 2
    summary = continued(f"{printed(begun)} --num-steps 2 --json", tmp_path)
    # In generation 0: nothing that was done is done again.
    assert (summary["training_name"], summary["steps"]) == (NAME, 2)
    assert (summary["generation"], summary["status"]) == (0, "completed")


@pytest.mark.parametrize("flags", FLAGS)
def test_after_any_flag(work: Work, flags: str) -> None:
    work.folder.mkdir()
    (work.folder / "run.toml").write_text('log_path = "from file"\nsave_every = 3\n')
    begun = work.call(*ONE_STEP, *FLAGS[flags])
    summary = continued(f"{printed(begun)} --num-steps 2 --json", work.home)
    assert (summary["steps"], summary["generation"]) == (2, 0)


def test_what_a_config_file_changed_is_recorded_and_the_printed_folder_is_absolute(
    work: Work,
) -> None:
    given = ("--training-name", NAME, "--log-path", "my runs/kept")
    work.call(*SMALL, *given, "--num-steps", "1")
    (work.folder / "more.toml").write_text("num_steps = 2\nmax_concurrent_rollouts = 3\n")
    done = work.call("run", *given, "--config", "more.toml", "--no-monitor")
    summary = continued(f"{printed(done)} --json", work.home)
    assert (summary["status"], summary["steps"]) == ("completed", 2)
    assert summary["log_path"] == str(work.folder / "my runs" / "kept")


def test_a_run_without_a_name_prints_one_that_continues(work: Work) -> None:
    done = work.call(*SMALL, "--num-steps", "1")
    name = summary_of(done)["training_name"]
    assert name.startswith("oracle-")
    assert continued(f"{printed(done)} --json", work.home)["training_name"] == name


def test_tasks_of_a_file_are_found_from_another_folder(work: Work) -> None:
    task = {
        "task_id": "train_02_enable_wifi",  # the oracle knows how to solve it
        "description": "Turn wifi on.",
        "setup": ["settings put global wifi_on 0"],
        "validation_query": "wifi_enabled",
        "expected": "True",
    }
    work.folder.mkdir()
    (work.folder / "tasks.jsonl").write_text(json.dumps(task))
    source = json.dumps([{"source_type": "file", "file_path": "tasks.jsonl"}])
    done = work.call(*ONE_STEP, "--tasks", source)
    assert continued(f"{printed(done)} --num-steps 2 --json", work.home)["steps"] == 2


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_in_every_shell(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    begun = Work(tmp_path, HOMES["quoted"]).call(*ONE_STEP, *FLAGS["log path"])
    assert continued(f"{printed(begun)} --num-steps 2 --json", tmp_path, shell)["steps"] == 2


@pytest.mark.parametrize(
    "program", [["cua-train"], ["./bin/cua-train"], [sys.executable, "-m", "producer"]]
)
def test_however_the_program_was_called(work: Work, program: list[str]) -> None:
    work.folder.mkdir()
    (work.folder / "bin").symlink_to(BIN)
    # A virtual environment that is active, by a relative path, in this shell alone.
    environ = {**work.environ, "PATH": f"bin:{BARE['PATH']}"}
    done = call(["/usr/bin/env", *program, *ONE_STEP], work.folder, environ)
    shown = in_a_new_shell(f"{printed(done)} --num-steps 2 --json", work.home)
    assert json.loads(shown.splitlines()[-1])["steps"] == 2


def test_the_commands_of_the_summary_run_as_printed(work: Work) -> None:
    shown = work.call(*(word for word in ONE_STEP if word != "--json")).stdout
    commands = [line.strip() for line in shown.partition("look at it:\n")[2].splitlines()]
    assert [command.partition("  # ")[2] for command in commands] == [
        "tables and monitor",
        "SQL",
        "events",
    ]
    assert [" up " in commands[0], " psql " in commands[1]] == [True, True]
    assert "training.completed" in in_a_new_shell(commands[2], work.home)


@pytest.mark.services
def test_the_page_of_a_training_opens_again_as_the_last_line_of_its_monitor_names_it(
    work: Work,
) -> None:
    with socket.socket() as other:
        # The monitor takes a free port then, which no other test asks for.
        with contextlib.suppress(OSError):
            other.bind(("127.0.0.1", DEFAULT_PORT))
            other.listen()
        done = work.call(*(word for word in ONE_STEP if word != "--no-monitor"))
    found = re.search(r"reopen it with: (.+) -> (http://\S+)$", done.stderr, re.MULTILINE)
    assert found is not None, done.stderr
    command, url = found.groups()
    assert f"monitor: {url.partition('training/')[0]}\n" in done.stderr
    with subprocess.Popen(
        ["/bin/sh", "-c", f"exec env {command} --json"],
        cwd=work.home,
        env={**BARE, "HOME": str(work.home)},
        stdout=subprocess.PIPE,
        text=True,
    ) as up:
        try:
            assert up.stdout is not None
            up.stdout.readline()
            with urllib.request.urlopen(url, timeout=30) as page:  # noqa: S310  # our own server
                assert NAME in page.read().decode()
        finally:
            up.terminate()
    assert up.returncode == 0
    stop_running(work.folder / "it's a home" / "database")


def test_the_folder_of_a_training_is_enough_to_name_it(work: Work) -> None:
    words = (*SMALL, "--log-path", "mine")
    first = summary_of(work.call(*words, "--num-steps", "1"))
    again = summary_of(work.call(*words, "--num-steps", "2"))
    assert again["training_name"] == first["training_name"]
    assert (again["steps"], again["generation"]) == (2, 0)


def test_a_new_generation_in_another_folder_is_found_by_the_name(work: Work) -> None:
    words = (*SMALL, "--training-name", "kept")
    work.call(*words, "--num-steps", "2")
    over = ("--behavior-if-log-dir-exists", "overwrite", "--log-path", "other")
    work.call(*words, "--num-steps", "1", *over)
    runs = work.folder / "it's a home" / "runs"
    assert (runs / "kept" / MOVED_TO).read_text() == str(work.folder / "other")
    summary = summary_of(work.call(*words, "--num-steps", "2"))
    assert (summary["steps"], summary["generation"]) == (2, 1)
    assert summary["log_path"] == str(work.folder / "other")


def test_a_log_dir_has_a_folder_for_each_training(work: Work) -> None:
    words = (*SMALL, "--num-steps", "1", "--log-dir", "runs")
    runs = work.folder / "it's a home" / "runs"
    for name in ("a", "b"):
        folder = summary_of(work.call(*words, "--training-name", name))["log_path"]
        assert folder == str(work.folder / "runs" / name)
        assert os.readlink(runs / name) == folder  # noqa: PTH115  # as text
    refused = work.call(*words, "--training-name", "c", "--log-path", "x", code=2)
    assert "log_dir: log_path already names the training's folder" in refused.stderr
    assert not (runs / "c").exists()
