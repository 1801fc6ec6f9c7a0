"""Compares requirements.lock with pyproject.toml (`fits`) or with what is installed (`installed`).

Run by .ci/install with .venv's Python, in which pip alone is installed at first: the parser of
requirements is pip's own copy. Exit 2 with one sentence on stderr when they differ.
"""

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
MOST_NAMED = 5


def pins() -> dict[str, str]:
    """Name -> version, of the lock's lines that are meant for this Python and this system."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    found = {}
    for line in re.findall(r"^[A-Za-z0-9].*", text, re.MULTILINE):
        requirement = Requirement(line.split(" --hash")[0].rstrip(" \\"))
        if requirement.marker is None or requirement.marker.evaluate():
            (pin,) = requirement.specifier
            found[canonicalize_name(requirement.name)] = pin.version
    return found


def misfits() -> list[str]:
    """What pyproject.toml asks for, in any of its extras, that the lock does not fulfil."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project.get("dependencies", [])]
    for extra in project.get("optional-dependencies", {}).values():
        asked += extra
    pinned = pins()
    found = []
    for text in asked:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if name == canonicalize_name(project["name"]):
            continue
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        if name not in pinned:
            found.append(f"{name} is missing")
        elif not requirement.specifier.contains(pinned[name], prereleases=True):
            found.append(f"{text} is asked for, {pinned[name]} pinned")
    return found


def differences() -> list[str]:
    """The lock's lines whose version is not the installed one."""
    found = []
    for name, pinned in pins().items():
        try:
            installed = version(name)
        except PackageNotFoundError:
            found.append(f"{name} {pinned} is not installed")
            continue
        if installed != pinned:
            found.append(f"{name} {installed} is installed, {pinned} locked")
    return found


def main() -> int:
    """0 when they agree, else 2."""
    if sys.argv[1] == "fits":
        found, advice = misfits(), "run `make lock` where .venv is set up, and commit its result"
        sentence = "requirements.lock does not fit pyproject.toml"
    else:
        found, advice = differences(), "remove .venv and run `make install`"
        sentence = ".venv is not what requirements.lock says"
    if not found:
        return 0
    named = "; ".join(found[:MOST_NAMED])
    more = f"; and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    sys.stderr.write(f"error: {sentence} ({named}{more}): {advice}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
