"""README.md does what it says.

Its quick blocks are run as they stand, of the long ones every command is checked to be accepted.
"""

import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from consumers.cli import cli as project_cli
from consumers.database.location import POSTGRES_DEFAULTS, resolve_database
from consumers.embedded_postgres.binaries import find_binaries
from consumers.embedded_postgres.postgres import stop_running
from producer.cli import cli as train_cli
from schemas.installation import read_installation
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
LONG = ("make ", "docker ", "cua-train run\n")
"""What makes a block one that is not run here: it sets up, needs Docker, or trains for minutes."""
TIMEOUT_S = 180


def blocks(language: str, *, long: bool) -> list[str]:
    return [
        text
        for kind, text in BLOCKS
        if kind == language and any(mark in text for mark in LONG) is long
    ]


def commands_of(block: str) -> Iterator[list[str]]:
    for line in block.splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment in which the commands are this checkout's, with an installation of its own."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, package in (("cua-train", "producer"), ("cua-project", "consumers")):
        script = programs / name
        script.write_text(
            f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m"
            f' {package} "$@"\n'
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    path = os.pathsep.join(
        [str(programs), str(find_binaries(os.environ).folder), os.environ["PATH"]]
    )
    yield {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}
    stop_running(read_installation(os.environ).database_dir)


@pytest.mark.services
def test_the_quick_blocks_run_in_order_as_they_stand(environ: dict[str, str]) -> None:
    ran = ""
    for language, text in BLOCKS:
        if language == "sh" and text in blocks("sh", long=False):
            command = ["bash", "-euo", "pipefail", "-c", text]
        elif language == "python":
            command = [sys.executable, "-c", text]
        else:
            continue
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environ,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        ran += done.stdout
    assert re.search(r"first +\| completed +\| +2 \| +2", ran), "psql shows the training"
    assert "2 completed" in ran, "Python shows its second step"
    assert "cua.step.finished" in ran or "step.finished" in ran, "tail shows the step's events"


def test_there_are_blocks_of_every_kind() -> None:
    assert len(blocks("sh", long=False)) == 2
    assert len(blocks("sh", long=True)) == 2
    assert len(blocks("python", long=False)) == 1


def test_make_targets_that_are_named_exist_and_do_what_the_readme_says() -> None:
    named = set(re.findall(r"`?make (\w+)", README))
    assert {"run", "test", "lint", "bench"} <= named
    for target in named:
        plan = subprocess.run(
            ["make", "--dry-run", "-C", str(ROOT), target],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert ".ci/install" in plan, f"make {target} does not set .venv up"
    assert (
        "cua-train"
        in subprocess.run(
            ["make", "-n", "-C", str(ROOT), "run"], capture_output=True, text=True, check=True
        ).stdout
    )
    assert (
        "pytest"
        in subprocess.run(
            ["make", "-n", "-C", str(ROOT), "test"], capture_output=True, text=True, check=True
        ).stdout
    )


def test_ci_runs_the_readmes_test_command_and_lint() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert "make test" in script
    assert "make lint" in script
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_commands_of_the_long_blocks_are_accepted() -> None:
    checked = 0
    for block in blocks("sh", long=True):
        for program, *arguments in commands_of(block):
            group = {"cua-train": train_cli, "cua-project": project_cli}.get(program)
            if group is None:
                continue
            context = click.Context(group)
            command = group.get_command(context, arguments[0])
            assert command is not None
            command.make_context(
                arguments[0], arguments[1:], parent=context
            )  # parses, and calls nothing
            checked += 1
    assert checked == 2


def test_compose_offers_what_the_readme_connects_to() -> None:
    compose = (ROOT / "compose.yaml").read_text()
    exported = dict(re.findall(r"^export (\w+)=(\S+)$", README, re.MULTILINE))
    assert exported["KAFKA_BOOTSTRAP_SERVERS"] == "localhost:9092"
    assert "PLAINTEXT://localhost:9092" in compose
    assert '"127.0.0.1:9092:9092"' in compose
    assert '"127.0.0.1:5432:5432"' in compose
    for name in ("POSTGRES_DB", "POSTGRES_USER", "POSTGRES_PASSWORD"):
        assert f"{name}: {POSTGRES_DEFAULTS[name]}\n" in compose
    assert resolve_database({"DATABASE_URL": exported["DATABASE_URL"]}) == resolve_database(
        {"POSTGRES_HOST": "localhost"}
    )
