"""Commands that are printed for people: each runs as printed, in a new shell, from any folder."""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from schemas.installation import read_installation

SHARED = ("KAFKA_BOOTSTRAP_SERVERS", "CUA_TOPIC_PREFIX", "CUA_BLOBS")
"""Variables that name another log or blob store. KAFKA_SASL_* and the like are secrets."""
MODULES = {"cua-train": "producer", "cua-project": "consumers"}


def continue_command(
    training_name: str,
    *,
    log_path: Path | None = None,
    monitor: bool = True,
    environ: Mapping[str, str] = os.environ,
) -> str:
    """The `cua-train run` that continues a training.

    All other settings are taken from the record in the log.
    """
    words = ["run", "--training-name", training_name]
    if log_path is not None:
        words += ["--log-path", str(log_path.expanduser().absolute())]
    if not monitor:
        words.append("--no-monitor")
    return " ".join([*_assignments(environ), program("cua-train"), shlex.join(words)])


def cua_project_command(*words: str, environ: Mapping[str, str] = os.environ) -> str:
    """A `cua-project` command that reads this installation."""
    return " ".join([*_assignments(environ), program("cua-project"), shlex.join(words)])


def program(name: str) -> str:
    """One of our two commands as a shell finds it: its name, or its path when not on the PATH."""
    for folder in (Path(sys.argv[0]).absolute().parent, Path(sys.executable).parent):
        own = folder / name
        if os.access(own, os.X_OK):
            found = shutil.which(name)
            is_on_path = found is not None and Path(found).samefile(own)
            return name if is_on_path else shlex.quote(str(own))
    return shlex.join([sys.executable, "-m", MODULES[name]])


def _assignments(environ: Mapping[str, str]) -> list[str]:
    given = {name: environ[name] for name in SHARED if environ.get(name)}
    if "@" in given.get("CUA_BLOBS", ""):
        del given["CUA_BLOBS"]  # it may hold a password
    if environ.get("CUA_HOME") or environ.get("XDG_DATA_HOME"):
        given = {"CUA_HOME": str(read_installation(environ).home), **given}
    return [f"{name}={shlex.quote(value)}" for name, value in given.items()]
