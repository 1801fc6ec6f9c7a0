"""requirements.lock pins all that pyproject.toml asks for, by hash, and names no index."""

import re
import tomllib

from tests.support.paths import ROOT

LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


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
