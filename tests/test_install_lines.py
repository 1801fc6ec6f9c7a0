"""No text of ours installs a stranger's package, and every extra that a text names exists.

On the public index `cua-train` is another company's, and `cua-train-rl` is nobody's: whoever
registers it would be installed by a line that asks an index for it. So a line installs from the
checkout (`'.[sql]'`), from another folder or from a wheel.
"""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import get_args

import pytest

from consumers.trackers.open import TrackerName
from producer.commands.doctor import PACKAGES
from schemas.distribution import DISTRIBUTION, install_command
from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = set(PROJECT["optional-dependencies"])

NAME = r"cua[-_.]train(?:[-_.]rl)?"
AFTER = r"(?![\w/-]|\.\w)"
"""What goes on is another word, a path or a wheel's file."""
OPTIONS = r"(?:\s+[^\s`;&|#]+)*?"
"""Options and other packages of the same command."""
TOOL_COMMAND = (
    r"\b(?:(?:pip[\d.]*|pipx|conda|mamba|micromamba)\s+(?:install|download|wheel|inject|upgrade|run)"
    r"|(?:uv|poetry|pdm|rye|hatch|pixi|pipenv)\s+(?:pip\s+|tool\s+)?(?:add|install|run|upgrade)"
    r"|uvx|easy_install)"
)
BY_BARE_NAME = re.compile(
    rf"{TOOL_COMMAND}{OPTIONS}\s+[\"'`]*{NAME}{AFTER}"
    # In a sentence.
    rf"|\b(?:re)?installs?\s+(?:the\s+(?:package|distribution)\s+)?[\"'`]*{NAME}{AFTER}"
    # Our extras, wherever they stand; not a folder's, as in ../cua-train[sql].
    rf"|(?<![\w./-]){NAME}\["
    # A pin, as in a file of requirements.
    rf"|(?<![\w./-]){NAME}\s*(?:[=~!<>]=|[<>])\s*v?\d",
    re.IGNORECASE,
)
OF_ITSELF = re.compile(rf'"{DISTRIBUTION}\[[\w,-]+\]"')
"""An extra made of other extras, in pyproject.toml: resolved to the same checkout or wheel."""
WITH_EXTRAS = re.compile(
    rf"\binstall{OPTIONS}\s+[\"'`]*((?:\.|[\w.~$/-]*/[\w.-]*|[\w./-]+\.whl))\[([^\]{{}}]*)\]"
    rf"|()[\"']\.\[([^\]{{}}\"']*)\][\"']",
)
"""A checkout or a wheel with extras; {} are those of an f-string's expression."""


def joined(text: str) -> str:
    """The text with continued lines, and neighbouring string literals, as one line."""
    return re.sub(r"\\\n\s*|[\"'][ ]*\n\s*f?[\"']", "", text)


def bare_installs(text: str, path: str = "") -> list[str]:
    """Lines that ask an index for a package by our name."""
    if path == "pyproject.toml":
        text = OF_ITSELF.sub("", text)
    return [line for line in joined(text).splitlines() if BY_BARE_NAME.search(line)]


def named_extras(text: str) -> set[str]:
    """Every extra of a checkout or a wheel in the text."""
    found = (one[1] or one[3] for one in WITH_EXTRAS.findall(joined(text)))
    return set(chain.from_iterable(re.split(r"\s*,\s*", extras) for extras in found))


def tracked_texts() -> Iterator[tuple[str, str]]:
    """Path and content of every tracked text, this file left out."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("the list of files is git's")
    for path in listed.stdout.decode().split("\0")[:-1]:
        file = ROOT / path
        if file == Path(__file__) or not file.is_file():
            continue
        content = file.read_bytes()
        if b"\0" not in content:
            yield path, content.decode(errors="replace")


@pytest.mark.parametrize(
    "line",
    [
        "pip install cua-train",
        "pip install 'cua-train[parquet]'",
        "pip3 install --upgrade cua_train",
        "python -m pip install -U  cua-train==0.1.0",
        "pip install torch 'cua-train-rl[sql]'",
        "pip download cua-train-rl",
        "pip install \\\n    --no-deps cua-train",
        "RUN pip install --no-cache-dir Cua-Train",
        "uv add cua-train",
        "uv pip install cua-train-rl",
        "uv pip install --python .venv/bin/python cua-train",
        "uv tool install cua-train",
        "uvx cua-train",
        "uvx --from cua-train-rl cua-project",
        "pipx install cua-train",
        "pipx run cua-train",
        "poetry add cua-train",
        "conda install -c conda-forge cua-train",
        "install cua-train[sql], or omit it",
        "no migrations; reinstall cua-train",
        "A host that only projects installs `cua-train`.",
        "reading needs `cua-train[parquet]`",
        "an image with cua-train[project,train] in it",
        '    message = "no psql; install"\n        " `cua-train`, which brings one"',
        "cua-train>=0.1",
        "  - cua-train-rl == 0.1.0",
        'all = ["cua-train[project,sql]"]',
    ],
)
def test_a_line_that_asks_an_index_for_our_name_is_found(line: str) -> None:
    assert bare_installs(line, "pyproject.toml") != []
    assert bare_installs(f"Before it.\n{line}\nAfter it.\n") != []


@pytest.mark.parametrize(
    "line",
    [
        "pip install '.[parquet]'",
        "run `pip install '.[mysql]'` in the checkout of cua-train",
        "pip install './cua_train_rl-0.1.0-py3-none-any.whl[project]'",
        "pip install ../cua-train",
        "pip install -e './cua-train[sql]'",
        "pip wheel --no-deps .",
        "git clone cua-train; cd cua-train; pip install .",
        "make install      # .venv with cua-train and cua-project",
        "pip install . && cua-train run",
        "installing cua-train",
        "the command `cua-train run` installs nothing; an image `cua-train`",
        "cua-train run --num-steps 2",
        'all = ["cua-train-rl[project,sql]"]',
    ],
)
def test_a_line_that_installs_a_checkout_or_a_wheel_is_not(line: str) -> None:
    assert bare_installs(line, "pyproject.toml") == []


def test_no_text_asks_an_index_for_our_name() -> None:
    found = [(path, line) for path, text in tracked_texts() for line in bare_installs(text, path)]
    assert found == [], "install from the checkout: schemas/distribution.py says how"


@pytest.mark.parametrize(
    ("line", "extras"),
    [
        ("pip install '.[parkett]'", {"parkett"}),
        ("run `pip install '.[project, sql]'` here", {"project", "sql"}),
        ('uv pip install -e ".[train]"', {"train"}),
        ("`pip install '.[wandb]'` or `'.[mlflow]'`", {"wandb", "mlflow"}),
        ("RUN pip install --no-cache-dir '/src[project]'", {"project"}),
        ("pip install './cua_train_rl-0.1.0-py3-none-any.whl[all]'", {"all"}),
        ("pip install 'verl[vllm]'", set()),
        ("pip install '.[{','.join(extras)}]'", set()),
    ],
)
def test_the_extras_of_a_line_are_read(line: str, extras: set[str]) -> None:
    assert named_extras(line) == extras


def test_every_extra_that_a_text_installs_exists() -> None:
    named = {(path, extra) for path, text in tracked_texts() for extra in named_extras(text)}
    assert {("README.md", "project"), ("docs/data.md", "parquet")} <= named
    assert {(path, extra) for path, extra in named if extra not in EXTRAS} == set()


def test_every_extra_that_a_message_installs_exists() -> None:
    """Calls of install_command name their extras as words; two take them from a table."""
    named = {*get_args(TrackerName), *PACKAGES.values()}
    others = []
    for package in ("schemas", "producer", "consumers"):
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                    continue
                if node.func.id != install_command.__name__:
                    continue
                words = [each.value for each in node.args if isinstance(each, ast.Constant)]
                named |= {str(word) for word in words}
                if not words or len(words) < len(node.args):
                    others.append(str(file.relative_to(ROOT)))
    assert {"project", "database", "parquet", "sql", "mysql", "train"} <= named
    assert named - EXTRAS == set()
    assert sorted(others) == ["consumers/trackers/open.py", "producer/commands/doctor.py"]


def test_a_missing_package_has_one_exit_code() -> None:
    """A message with `install_command` belongs to no NotFoundError, whose exit code is 3."""
    raised = {
        error: place
        for package in ("producer", "consumers")
        for file in (ROOT / package).rglob("*.py")
        for error, place in _errors_of_missing_packages(file)
    }
    # The embedded database may be a PostgreSQL of the system; a ValueError of a task's check is
    # shown as a UsageError; without migrations the installation itself is broken.
    assert raised.keys() == {"UsageError", "UnreachableError", "ValueError", "CuaProjectError"}, (
        raised
    )


def _errors_of_missing_packages(file: Path) -> Iterator[tuple[str, str]]:
    """What is raised in the block of a call of install_command, and the line."""
    for node in ast.walk(ast.parse(file.read_text())):
        for block in (getattr(node, name, ()) for name in ("body", "orelse")):
            statements = block if isinstance(block, list) else ()
            shown = [one for one in statements if isinstance(one, ast.Assign | ast.Raise)]
            if not any(_installs(one) for one in shown):
                continue
            for one in shown:
                if isinstance(one, ast.Raise) and isinstance(one.exc, ast.Call):
                    yield ast.unparse(one.exc.func), f"{file}:{one.lineno}"


def _installs(statement: ast.stmt) -> bool:
    calls = (node.func for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any(isinstance(func, ast.Name) and func.id == "install_command" for func in calls)


def test_a_message_says_what_to_run_and_where() -> None:
    assert (
        install_command("project", "database")
        == "`pip install '.[project,database]'` in the checkout of cua-train (without a checkout:"
        " the same with the wheel's file instead of the dot)"
    )


def test_the_distribution_has_its_own_name() -> None:
    assert PROJECT["name"] == DISTRIBUTION == "cua-train-rl"
