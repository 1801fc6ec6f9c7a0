"""Bytes on disk: log or spool, blobs, database."""

import os
import shutil
import time
from pathlib import Path
from typing import NamedTuple

from consumers.database.connection import Cursor
from schemas.installation import Installation

NUM_FOLDERS = 256
"""Of blobs, by the first two digits of their hash."""
WALK_S = 0.5
"""Longest walk through the blobs; beyond it the rest is estimated."""


class DiskUse(NamedTuple):
    """Bytes; None where there is none or it is unknown."""

    log_bytes: int | None
    """The local log with its write-ahead log; None where the log is Kafka's."""
    spool_bytes: int | None
    """The same file in front of Kafka."""
    blobs_bytes: int | None
    """None: a remote store."""
    blobs_estimated: bool
    """Too many to be added up quickly: from some of the 256 folders, which are alike."""
    database_bytes: int
    free_bytes: int | None
    """Left on the disk of CUA_HOME."""


def measure_disk(installation: Installation, cursor: Cursor) -> DiskUse:
    """What the installation takes on this machine, and its database wherever that is."""
    path = installation.local_log_path
    file = sum(_size(path.with_name(path.name + suffix)) for suffix in ("", "-wal", "-shm"))
    is_local = installation.kafka_bootstrap_servers is None
    folder = installation.blobs_folder
    blobs, is_estimate = (None, False) if folder is None else _measure_blobs(folder)
    cursor.execute("SELECT pg_database_size(current_database())")
    row = cursor.fetchone()
    assert row is not None  # noqa: S101  # a SELECT of a function has one row
    return DiskUse(
        log_bytes=file if is_local else None,
        spool_bytes=None if is_local else file,
        blobs_bytes=blobs,
        blobs_estimated=is_estimate,
        database_bytes=row[0],
        free_bytes=free_bytes(installation.home),
    )


def free_bytes(folder: Path) -> int | None:
    """Left on the disk of a folder that may not exist yet; None when it is unknown."""
    try:
        existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
        return shutil.disk_usage(existing).free
    except OSError:
        return None


def _measure_blobs(folder: Path) -> tuple[int, bool]:
    deadline = time.monotonic() + WALK_S
    total = 0
    for number in range(NUM_FOLDERS):
        if number and time.monotonic() > deadline:
            return total * NUM_FOLDERS // number, True
        total += _folder_size(folder / "sha256" / f"{number:02x}")
    return total, False


def _folder_size(folder: Path) -> int:
    try:
        with os.scandir(folder) as entries:
            return sum(_size(Path(entry.path)) for entry in entries)
    except OSError:
        return 0


def _size(path: Path) -> int:
    """0 for a file that is gone meanwhile."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
