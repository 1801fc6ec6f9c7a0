"""Rules that import-linter cannot check: the two sides stay apart, the commands stay light."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from consumers.cli import COMMANDS as PROJECT_COMMANDS
from consumers.cli import cli as project_cli
from producer.cli import COMMANDS as TRAIN_COMMANDS
from producer.cli import cli as train_cli
from tests.support.paths import ROOT

PACKAGES = ("schemas", "producer", "consumers")
LONGEST_FILE_LINES = 400
HEAVY = frozenset({"torch", "torchvision", "transformers", "peft", "safetensors"})
DATABASE = frozenset({"sqlalchemy", "psycopg2", "alembic"})
WITHOUT_TORCH = ("environments", "tasks", "codecs", "validators", "rollouts", "emit", "log")
"""Parts of the producer that work on hosts without torch."""


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """Top-level packages that the file imports anywhere, functions and type checking included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize(
    ("side", "only"),
    [("producer", "producer.log.kafka_client"), ("consumers", "consumers.log.kafka_client")],
)
def test_kafka_is_imported_by_exactly_one_module_of_each_side(side: str, only: str) -> None:
    assert [module_name(path) for path in sources(side) if "kafka" in imported(path)] == [only]


def test_the_sides_meet_in_schemas_alone_and_each_keeps_to_its_libraries() -> None:
    forbidden = {
        "producer": DATABASE | {"consumers"},
        "consumers": HEAVY | {"producer"},
        "schemas": DATABASE | HEAVY | {"producer", "consumers", "kafka"},
    }
    found = [
        (module_name(path), name)
        for side, names in forbidden.items()
        for path in sources(side)
        for name in imported(path) & names
    ]
    assert found == []


def modules_loaded_by(program: str) -> set[str]:
    """Top-level modules of a fresh interpreter after this program; dynamic imports count."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            (
                f"{program}\nimport sys; print(' '.join({{name.partition('.')[0] for name in"
                " sys.modules}))"
            ),
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        timeout=120,
    )
    return set(done.stdout.splitlines()[-1].split())


def import_all(paths: Iterator[Path]) -> str:
    names = [module_name(path) for path in paths if path.name != "__main__.py"]
    return f"import importlib\nfor name in {names!r}: importlib.import_module(name)"


def test_nothing_of_the_consumers_loads_torch() -> None:
    assert (
        modules_loaded_by(import_all(sources("consumers", "schemas"))) & (HEAVY | {"producer"})
        == set()
    )


def test_what_runs_rollouts_loads_neither_torch_nor_a_database_driver() -> None:
    folders = [f"producer/{part}" for part in WITHOUT_TORCH if (ROOT / "producer" / part).is_dir()]
    assert len(folders) >= len(WITHOUT_TORCH), "a part was renamed: say so here"
    assert (
        modules_loaded_by(import_all(sources(*folders))) & (HEAVY | DATABASE | {"consumers"})
        == set()
    )


def test_openai_is_loaded_only_where_a_server_is_used() -> None:
    trainings = "import producer.training.run, producer.training.rescore"
    assert "openai" not in modules_loaded_by(trainings)
    assert "openai" in modules_loaded_by(f"{trainings}, producer.policy.served")


def test_alembic_is_loaded_only_where_a_migration_is_made() -> None:
    projector = "import consumers.projection.loop, consumers.database.readiness"
    assert "alembic" not in modules_loaded_by(f"{projector}, consumers.monitor.pages")
    assert "alembic" in modules_loaded_by(f"{projector}, consumers.database.migrate")


def imports_in_strings(path: Path) -> Iterator[str]:
    """Modules of ours that a program in a string imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for module in re.findall(r"\b(?:from|import) ([a-z_.]+)", node.value):
                if module.partition(".")[0] in {*PACKAGES, "tests"}:
                    yield module


def test_programs_in_strings_import_modules_that_exist() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {module}"
        for path in sources(*PACKAGES, "tests")
        for module in imports_in_strings(path)
        if not (ROOT / Path(*module.split("."))).is_dir()
        and not (ROOT / Path(*module.split("."))).with_suffix(".py").is_file()
    ]
    assert found == []


def test_alembic_is_the_library_and_the_folder_of_migrations_no_package() -> None:
    assert not list((ROOT / "alembic").rglob("__init__.py"))
    spec = find_spec("alembic")
    assert spec is not None
    assert spec.origin is not None
    assert ROOT / "alembic" not in Path(spec.origin).parents


def test_no_file_is_longer_than_a_person_reads_in_one_go() -> None:
    longest = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for path in sources(*PACKAGES, "tests", "alembic")
    }
    assert {name: lines for name, lines in longest.items() if lines > LONGEST_FILE_LINES} == {}


def test_every_module_says_what_it_is() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in sources(*PACKAGES)
        if path.read_text().strip() and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


def commands() -> list[tuple[str, click.Group, str]]:
    return [("cua-train", train_cli, name) for name in TRAIN_COMMANDS] + [
        ("cua-project", project_cli, name) for name in PROJECT_COMMANDS
    ]


@pytest.mark.parametrize(
    ("program", "group", "name"),
    commands(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_command_has_help_and_is_mentioned_in_the_docs(
    program: str, group: click.Group, name: str
) -> None:
    shown = CliRunner().invoke(group, [name, "--help"], prog_name=program)
    assert shown.exit_code == 0
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert command.help, f"{program} {name} says nothing about itself"
    options = [
        parameter
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
    ]
    assert [option.name for option in options if not option.help] == [], "options without help"
    docs = "\n".join(
        path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    )
    assert f"{program} {name}" in docs, f"neither README.md nor docs/ mentions `{program} {name}`"


def test_no_file_names_a_machine_or_a_registry() -> None:
    # In pieces, so that this file does not name them either.
    names = [
        "/work" + "/",
        "files.python" + "hosted",
        "pypi" + ".org",
        "repo1" + ".maven",
        "--index" + "-url h",
        "--extra-index" + "-url",
    ]
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\0")
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: nothing says which files are ours")
    assert "pyproject.toml" in tracked
    found = []
    for name in filter(None, tracked):
        path = ROOT / name
        if path.is_file() and b"\0" not in (content := path.read_bytes()):
            found += [(name, word) for word in names if word.encode() in content]
    assert found == []
