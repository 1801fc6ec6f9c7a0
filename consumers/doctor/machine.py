"""This machine: folder, disk, packages, GPU, locks."""

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from consumers.console import format_bytes
from consumers.doctor.finding import Finding, failed, ok, warning
from consumers.status.disk import free_bytes
from schemas.distribution import DISTRIBUTION, install_command
from schemas.installation import Installation
from schemas.lock_holders import stopped_holder, stopped_writer

LITTLE_BYTES, TOO_LITTLE_BYTES = 5_000_000_000, 500_000_000
"""Room for days of screenshots; room for the next hour."""
GPU_TIMEOUT_S = 20


def look_at_home(installation: Installation) -> Iterator[Finding]:
    """CUA_HOME can be written."""
    home = installation.home
    existing = next(parent for parent in (home, *home.parents) if parent.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".doctor-"):
            pass
    except OSError as error:
        yield failed(
            "home", f"{home} cannot be written: {error.strerror}", "correct its owner, or CUA_HOME"
        )
        return
    yield ok("home", f"{home}" + ("" if existing == home else " (will be created)"))


def look_at_disk(
    installation: Installation, room: Callable[[Path], int | None] = free_bytes
) -> Iterator[Finding]:
    """Room where the log, the database and the blobs grow; `room`: bytes free at a folder."""
    folders = {"disk of CUA_HOME": installation.home}
    blobs = installation.blobs_folder
    if blobs is not None and not blobs.is_relative_to(installation.home):
        folders["disk of the blobs"] = blobs
    for name, folder in folders.items():
        free = room(folder)
        if free is None:
            yield warning(name, f"the room at {folder} is unknown", "look at it with df")
        elif free < TOO_LITTLE_BYTES:
            yield failed(name, f"{format_bytes(free)} free", "make room: `cua-project gc` helps")
        elif free < LITTLE_BYTES:
            yield warning(name, f"{format_bytes(free)} free", "make room: `cua-project gc` helps")
        else:
            yield ok(name, f"{format_bytes(free)} free")


def look_at_packages() -> Iterator[Finding]:
    """Python and what the reading side imports."""
    python = f"Python {'.'.join(map(str, sys.version_info[:3]))}"
    missing = []
    for requirement in importlib.metadata.requires(DISTRIBUTION) or []:
        name, _, marker = requirement.partition(";")
        extra = re.search(r"extra == ['\"](\w+)['\"]", marker)
        # The extra `database` is one way to a PostgreSQL; whether there is one is another check.
        if extra and extra[1] != "project":
            continue
        package = re.split(r"[\[<>=!~ ]", name.strip(), maxsplit=1)[0]
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            missing.append(package)
    if missing:
        yield failed(
            "packages",
            f"{python}; missing: {', '.join(missing)}",
            f"run {install_command('project')}",
        )
    else:
        yield ok("packages", f"{python}, cua-train {importlib.metadata.version(DISTRIBUTION)}")


def look_at_gpu() -> Iterator[Finding]:
    """The GPUs that nvidia-smi lists; torch is not imported."""
    program = shutil.which("nvidia-smi")
    if program is None:
        yield ok("gpu", "no NVIDIA driver: training runs on the CPU")
        return
    try:
        done = subprocess.run(
            [program, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=GPU_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        yield warning("gpu", f"nvidia-smi does not answer: {error}", "look at the driver")
        return
    if done.returncode or not done.stdout.strip():
        output = (done.stdout + done.stderr).strip().splitlines() or ["nothing"]
        yield warning("gpu", f"nvidia-smi fails: {output[0]}", "look at the driver")
        return
    for line in done.stdout.strip().splitlines():
        yield ok("gpu", line)


def look_at_stopped_holders(installation: Installation) -> Iterator[Finding]:
    """Locks of this home whose holder is stopped (Ctrl-Z, SIGSTOP): others wait for it."""
    found = {path: pid for path, pid in _holders(installation) if pid is not None}
    for path, pid in found.items():
        yield warning(
            "locks",
            f"{path} is held by process {pid}, which is stopped",
            f"let it go on (kill -CONT {pid}) or end it (kill -KILL {pid}): others wait for it",
        )
    if not found:
        yield ok("locks", "no stopped process holds one")


def _holders(installation: Installation) -> Iterator[tuple[Path, int | None]]:
    """Each lock file of the home, with the stopped process that holds it."""
    log = installation.local_log_path
    yield log, stopped_writer(log)
    for path in (
        *(log.with_name(name) for name in ("shipper.lock", "create.lock")),
        *installation.runs_dir.glob("*/lock"),
        *installation.database_dir.glob("*.lock"),
    ):
        yield path, stopped_holder(path)
