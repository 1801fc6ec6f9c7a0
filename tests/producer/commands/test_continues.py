"""The command that a run prints continues that run, whatever it was begun with, from any folder."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from consumers.embedded_postgres.postgres import stop_running
from consumers.monitor.server import DEFAULT_PORT
from producer.resume.run_folder import MOVED_TO

SMALL = (
    *("--model-name", "oracle", "--group-size", "2", "--groups-per-batch", "1"),
    *("--eval-episodes", "2"),
)
CONTINUE = re.compile(r"(?:^|; )continue (?:it )?with: (.*)$", re.MULTILINE)
BARE = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Begun:
    """A training of one step that was begun in `folder` with `words` and `environ`."""

    folder: Path
    environ: dict[str, str]

    def call(self, *words: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        return call(
            [sys.executable, "-P", "-m", "producer", *words], self.folder, self.environ, code
        )


def call(
    words: Sequence[str], folder: Path, environ: dict[str, str], code: int = 0
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
    assert done.returncode == code, f"{words}\n{done.stdout}\n{done.stderr}"
    return done


def in_a_new_shell(command: str, home: Path, shell: str = "sh") -> str:
    """What a command answers as typed by somebody who has a PATH and a home, in another folder."""
    elsewhere = home / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    done = call([shell, "-c", command], elsewhere, {**BARE, "HOME": str(home)})
    assert list(elsewhere.iterdir()) == [], "nothing is made where it is typed"
    return done.stdout


def continued(printed: str, home: Path, shell: str = "sh") -> dict[str, object]:
    """The summary of the printed command with one step more."""
    last = in_a_new_shell(f"{printed} --num-steps 2 --json", home, shell).splitlines()[-1]
    summary: dict[str, object] = json.loads(last)
    return summary


HOMES = {
    "unset": {},
    "relative": {"CUA_HOME": "homes/a"},
    "quoted": {"CUA_HOME": 'it\'s "my" $HOME & `x`'},
    "xdg": {"XDG_DATA_HOME": "data"},
    "blobs": {"CUA_BLOBS": "my blobs"},
}
FLAGS = {
    "none": (),
    "log path": ("--log-path", "my runs/it's one"),
    "log dir": ("--log-dir", "my runs"),
    "config": ("--config", "run.toml"),
    "checkpoints": ("--save-every", "0", "--eval-every", "0", "--takeover"),
    "verbose after": ("-v",),
    "json": ("--json", "--log-format", "text"),
    "overwrite": ("--behavior-if-log-dir-exists", "overwrite"),
}


def begin(tmp_path: Path, environ: dict[str, str], flags: Sequence[str]) -> str:
    """Train one step; the printed command."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "run.toml").write_text('log_path = "from file"\nsave_every = 3\n')
    begun = Begun(work, {**BARE, "HOME": str(tmp_path), **environ})
    words = ("run", "--training-name", "kept", *SMALL, "--num-steps", "1", "--no-monitor")
    done = begun.call(*words, *flags)
    found = CONTINUE.search(done.stderr)
    assert found is not None, done.stderr
    return found[1]


@pytest.mark.parametrize("home", HOMES)
def test_from_another_folder_in_a_newcomers_shell(tmp_path: Path, home: str) -> None:
    printed = begin(tmp_path, HOMES[home], FLAGS["log path" if home == "quoted" else "none"])
    name = ("--training-name", "kept", "--episodes", "2", "--json")
    evaluated = Begun(tmp_path / "work", {**BARE, "HOME": str(tmp_path), **HOMES[home]}).call(
        "evaluate", *name
    )
    assert json.loads(evaluated.stdout)["episodes"] == 2
    summary = continued(printed, tmp_path)
    # In generation 0: nothing that was done is done again.
    assert (summary["steps"], summary["generation"], summary["status"]) == (2, 0, "completed")


@pytest.mark.parametrize("flags", [name for name in FLAGS if name != "none"])
def test_after_any_flag(tmp_path: Path, flags: str) -> None:
    printed = begin(tmp_path, {"CUA_HOME": "home"}, FLAGS[flags])
    summary = continued(printed, tmp_path)
    assert (summary["steps"], summary["generation"]) == (2, 0)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_in_every_shell(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    printed = begin(tmp_path, HOMES["quoted"], FLAGS["log path"])
    assert continued(printed, tmp_path, shell)["steps"] == 2


@pytest.mark.parametrize(
    "program", [["cua-train"], ["./bin/cua-train"], [sys.executable, "-m", "producer"]]
)
def test_however_the_program_was_called(tmp_path: Path, program: list[str]) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "bin").symlink_to(BIN)
    # A virtual environment that is active, by a relative path, in this shell alone.
    environ = {**BARE, "HOME": str(tmp_path), "PATH": f"bin:{BARE['PATH']}"}
    words = ("run", "--training-name", "kept", *SMALL, "--num-steps", "1", "--no-monitor")
    done = call(["/usr/bin/env", *program, *words], work, environ)
    found = CONTINUE.search(done.stderr)
    assert found is not None
    assert continued(found[1], tmp_path)["steps"] == 2


def test_the_commands_of_the_summary_run_as_printed(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    begun = Begun(work, {**BARE, "HOME": str(tmp_path), "CUA_HOME": "it's a home"})
    words = ("run", "--training-name", "kept", *SMALL, "--num-steps", "1", "--no-monitor")
    shown = begun.call(*words).stdout
    commands = [line.strip() for line in shown.partition("look at it:\n")[2].splitlines()]
    assert [command.partition("  # ")[2] for command in commands] == [
        "tables and monitor",
        "SQL",
        "events",
    ]
    assert [" up " in commands[0], " psql " in commands[1]] == [True, True]
    assert "training.completed" in in_a_new_shell(commands[2], tmp_path)


@pytest.mark.services
def test_the_page_of_a_training_opens_again_as_the_last_line_of_its_monitor_names_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "elsewhere").mkdir()
    work = Begun(tmp_path, {**BARE, "HOME": str(tmp_path), "CUA_HOME": "it's home"})
    words = ("run", "--training-name", "kept", *SMALL, "--num-steps", "1", "--json")
    with socket.socket() as other:
        # The monitor takes a free port then, which no other test asks for.
        with contextlib.suppress(OSError):
            other.bind(("127.0.0.1", DEFAULT_PORT))
            other.listen()
        done = work.call(*words)
    found = re.search(r"reopen it with: (.+) -> (http://\S+)$", done.stderr, re.MULTILINE)
    assert found is not None, done.stderr
    command, url = found.groups()
    assert f"monitor: {url.partition('training/')[0]}\n" in done.stderr
    with subprocess.Popen(
        ["/bin/sh", "-c", f"exec env {command} --json"],
        cwd=tmp_path / "elsewhere",
        env={**BARE, "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as up:
        try:
            assert up.stdout is not None
            up.stdout.readline()
            with urllib.request.urlopen(url, timeout=30) as page:  # noqa: S310  # our own server
                assert "kept" in page.read().decode()
        finally:
            up.terminate()
    assert up.returncode == 0
    stop_running(tmp_path / "it's home" / "database")


def test_the_folder_of_a_training_is_enough_to_name_it(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    begun = Begun(work, {**BARE, "HOME": str(tmp_path), "CUA_HOME": "home"})
    words = ("run", *SMALL, "--no-monitor", "--json", "--log-path", "mine")
    first = json.loads(begun.call(*words, "--num-steps", "1").stdout.splitlines()[-1])
    again = json.loads(begun.call(*words, "--num-steps", "2").stdout.splitlines()[-1])
    assert again["training_name"] == first["training_name"]
    assert (again["steps"], again["generation"]) == (2, 0)


def test_a_new_generation_in_another_folder_is_found_by_the_name(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    begun = Begun(work, {**BARE, "HOME": str(tmp_path), "CUA_HOME": "home"})
    words = ("run", "--training-name", "kept", *SMALL, "--no-monitor", "--json")
    begun.call(*words, "--num-steps", "2")
    over = ("--behavior-if-log-dir-exists", "overwrite", "--log-path", "other")
    begun.call(*words, "--num-steps", "1", *over)
    assert (work / "home" / "runs" / "kept" / MOVED_TO).read_text() == str(work / "other")
    done = begun.call(*words, "--num-steps", "2")
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["steps"], summary["generation"]) == (2, 1)
    assert summary["log_path"] == str(work / "other")


def test_a_log_dir_has_a_folder_for_each_training(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    begun = Begun(work, {**BARE, "HOME": str(tmp_path), "CUA_HOME": "home"})
    words = ("run", *SMALL, "--no-monitor", "--json", "--num-steps", "1", "--log-dir", "runs")
    for name in ("a", "b"):
        done = begun.call(*words, "--training-name", name)
        folder = json.loads(done.stdout.splitlines()[-1])["log_path"]
        assert folder == str(work / "runs" / name)
        assert os.readlink(work / "home" / "runs" / name) == folder  # noqa: PTH115  # as text
    refused = begun.call(*words, "--training-name", "c", "--log-path", "x", code=2)
    assert "log_dir: contradicts log_path" in refused.stderr
    assert not (work / "home" / "runs" / "c").exists()
