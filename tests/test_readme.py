"""README.md does what it says: every block of commands is executed, or listed in NOT_EXECUTED.

Blocks run in the order of the README, in one installation, with this checkout's commands on the
PATH. What a block that is not executed calls is checked as far as it can be: our commands must
parse, make targets must exist. A new block is executed unless it is listed here.
"""

import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from consumers.cli import cli as project_cli
from consumers.database.location import POSTGRES_DEFAULTS, resolve_database
from consumers.embedded_postgres.postgres import stop_running
from producer.cli import cli as train_cli
from schemas.installation import read_installation
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text()
EXECUTED_LANGUAGES = ("sh", "python")
OTHER_LANGUAGES = ("text",)
"""Pictures and output; a block without a language is refused."""
NOT_EXECUTED: dict[str, str] = {
    "make run": (
        "make run trains for minutes, make test runs this test; their recipes are read instead"
    ),
    "docker compose up --detach": (
        "needs Docker and free default ports; tests/whole runs the same commands on a Kafka and a"
        " PostgreSQL of its own, and compose.yaml is compared with the variables below it"
    ),
}
"""First line of a block, without its comment -> why it is not executed."""
EXPECTED_OUTPUT = (
    r"first +\| completed +\| +2 \| +2",  # psql
    r"cua\.step\.finished|step\.finished",  # tail
    r"2 completed",  # Python
)
"""What the executed blocks print, in the README's order or not."""
COMMANDS = {"cua-train": train_cli, "cua-project": project_cli}
TIMEOUT_S = 180


class Block(NamedTuple):
    """One fenced block."""

    language: str
    text: str
    line: int
    """Of its opening fence in the README."""

    @property
    def first_line(self) -> str:
        """Without its comment."""
        return self.text.split("\n", 1)[0].partition("#")[0].strip()


def read_blocks(text: str) -> Iterator[Block]:
    """Every fenced block, indented ones included."""
    for found in re.finditer(r"^( *)```(\w*).*?\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL):
        body = re.sub(f"^{found[1]}", "", found[3], flags=re.MULTILINE)
        yield Block(found[2], body, text.count("\n", 0, found.start()) + 1)


BLOCKS = list(read_blocks(README))
EXECUTED = [
    block
    for block in BLOCKS
    if block.language in EXECUTED_LANGUAGES and block.first_line not in NOT_EXECUTED
]
LISTED = [block for block in BLOCKS if block.first_line in NOT_EXECUTED]


def command_lines(text: str) -> Iterator[list[str]]:
    """The words of each line that is a command."""
    for line in text.replace("\\\n", " ").splitlines():
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
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    yield {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}
    stop_running(read_installation(os.environ).database_dir)


@pytest.mark.services
def test_the_blocks_run_in_order_as_they_are(environ: dict[str, str]) -> None:
    output = ""
    for block in EXECUTED:
        is_python = block.language == "python"
        program = [sys.executable, "-c"] if is_python else ["bash", "-euo", "pipefail", "-c"]
        done = subprocess.run(
            [*program, block.text],
            cwd=ROOT,
            env=environ,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, f"README.md:{block.line}\n{done.stdout}\n{done.stderr}"
        output += done.stdout
    assert [wanted for wanted in EXPECTED_OUTPUT if not re.search(wanted, output)] == [], output


def test_every_block_is_executed_or_listed_with_its_reason() -> None:
    languages = {block.line: block.language for block in BLOCKS}
    known = {*EXECUTED_LANGUAGES, *OTHER_LANGUAGES}
    assert {line: name for line, name in languages.items() if name not in known} == {}
    assert len(BLOCKS) * 2 == len(re.findall(r"^ *```", README, re.MULTILINE)), "a fence is open"
    assert {block.first_line for block in LISTED} == set(NOT_EXECUTED), "a listed block is gone"
    assert len(LISTED) == len(NOT_EXECUTED), "two blocks begin alike"
    assert {block.language for block in EXECUTED} == set(EXECUTED_LANGUAGES)


def test_blocks_are_found_by_language_place_and_indentation() -> None:
    text = "a\n\n```sh\nls  # x\n```\n- b\n\n  ```python\n  if 1:\n      pass\n  ```\n"
    assert list(read_blocks(text)) == [
        Block("sh", "ls  # x\n", 3),
        Block("python", "if 1:\n    pass\n", 8),
    ]


def commands_of_listed_blocks() -> list[list[str]]:
    lines = [words for block in LISTED for words in command_lines(block.text)]
    return [words for words in lines if words[0] in COMMANDS]


@pytest.mark.parametrize("words", commands_of_listed_blocks(), ids=" ".join)
def test_a_command_of_a_block_that_is_not_executed_is_accepted(words: list[str]) -> None:
    program, name, *arguments = words
    context = click.Context(COMMANDS[program])
    command = COMMANDS[program].get_command(context, name)
    assert command is not None
    command.make_context(name, arguments, parent=context)  # parses, and calls nothing


def commands_in_sentences() -> list[str]:
    prose = re.sub(r"^( *)```.*?^\1```", "", README, flags=re.MULTILINE | re.DOTALL)
    return sorted(set(re.findall(r"`(cua-(?:train|project) [^`]+)`", prose)))


@pytest.mark.parametrize("text", commands_in_sentences())
def test_a_command_in_a_sentence_exists_with_its_options(text: str) -> None:
    program, *words = shlex.split(text)
    command: click.Command = COMMANDS[program]
    context = click.Context(command)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words.pop(0))
        assert found is not None
        command, context = found, click.Context(found, parent=context)
    options = {
        name for each in command.get_params(context) for name in (*each.opts, *each.secondary_opts)
    }
    assert {word.split("=")[0] for word in words if word.startswith("-")} <= options


def test_make_targets_that_are_named_exist_and_do_what_the_readme_says() -> None:
    named = set(re.findall(r"`?make ([a-z][\w-]*)", README))
    assert {"run", "test", "lint", "bench"} <= named
    for target in named:
        assert ".ci/install" in recipe(target), f"make {target} does not set .venv up"
    assert "cua-train" in recipe("run")
    assert "pytest" in recipe("test")


def recipe(target: str) -> str:
    """What make would run."""
    return subprocess.run(
        ["make", "--dry-run", "-C", str(ROOT), target], capture_output=True, text=True, check=True
    ).stdout


def test_ci_runs_the_readmes_test_command_and_lint() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    (targets,) = re.findall(r"^timeout .* make ([a-z ]+) \|\|", script, re.MULTILINE)
    assert {"lint", "test"} <= set(targets.split())
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


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
