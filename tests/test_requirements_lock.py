"""requirements.lock pins all that pyproject.toml asks for, by hash, and names no index."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions

from schemas.distribution import DISTRIBUTION
from tests.support.paths import ROOT

LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

PARTS = {
    *("pydantic-core", "tokenizers", "huggingface-hub"),
    *("crc32c", "lz4", "python-snappy", "cramjam", "zstandard"),
}
"""Of pydantic, of transformers, and of the extras of kafka-python that pyproject.toml names."""


def names(requirements: list[str]) -> set[str]:
    return {
        re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0].lower().replace("_", "-")
        for requirement in requirements
    }


def test_every_dependency_is_pinned() -> None:
    wanted = names(PROJECT["dependencies"]).union(
        *map(names, PROJECT["optional-dependencies"].values())
    ) - {PROJECT["name"]}
    pinned = set(re.findall(r"^([a-z0-9.-]+)==", LOCK, re.MULTILINE))
    assert wanted - pinned == set(), "run `make lock`"


def test_every_pin_has_a_hash() -> None:
    for entry in re.split(r"\n(?=[a-z])", LOCK.strip()):
        assert "==" in entry.split("\n", 1)[0]
        assert "--hash=sha256:" in entry, entry.split("\n", 1)[0]


def test_the_lock_names_no_index_and_no_host() -> None:
    assert not re.search(r"://|--(extra-)?index|--find-links", LOCK)


def test_every_package_that_is_imported_is_declared() -> None:
    """One that only comes with another package is gone when that one lets it go."""
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    declared = set[str]().union(*map(names, groups)) | {PROJECT["name"]} | PARTS
    distributions = packages_distributions()
    undeclared = set()
    for package in ("producer", "consumers", "schemas"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                imported = []
                if isinstance(node, ast.Import):
                    imported = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.module:
                    imported = [node.module]
                for name in {each.partition(".")[0] for each in imported} & distributions.keys():
                    if not names(distributions[name]) & declared:
                        undeclared.add(f"{path.relative_to(ROOT)}: {name}")
    assert undeclared == set()


def test_uv_is_told_which_extras_exclude_the_oracles() -> None:
    """`uv run` resolves all extras at once: an undeclared conflict ends it, whatever it runs."""
    extras = PROJECT["optional-dependencies"]

    def asks_for(extra: str) -> set[str]:
        inner = re.findall(rf"{DISTRIBUTION}\[([^\]]+)\]", " ".join(extras[extra]))
        own = names(extras[extra]) - {DISTRIBUTION}
        return own.union(*(asks_for(name) for group in inner for name in group.split(",")))

    assert "verl" in asks_for("oracles")
    ours = {extra for extra in extras if "transformers" in asks_for(extra)}
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["conflicts"]
    pairs = {frozenset(side["extra"] for side in pair) for pair in declared}
    assert pairs == {frozenset({"oracles", extra}) for extra in ours}


def test_alembics_own_command_works_in_a_clone() -> None:
    """`uv run` installs the group dev by itself; `make install` makes the same command."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    assert groups["dev"] == [f"{DISTRIBUTION}[project]"]
    assert "alembic" in names(PROJECT["optional-dependencies"]["project"])
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "history"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "<base> -> 0001" in done.stdout
