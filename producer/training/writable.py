"""Checks that files can be kept in a folder, without making it."""

import errno
from pathlib import Path
from tempfile import TemporaryFile

from producer.errors import OUT_OF_SPACE, CuaTrainError, UsageError

PROBE_BYTES = 1 << 16


def check_writable(folder: Path, name: str) -> None:
    """Write a file in the folder, or in the nearest folder above it that exists.

    Nothing is left behind. `name` is what the user set (`CUA_HOME`, `--log-path`). UsageError when
    the folder is impossible, CuaTrainError when its disk is full.
    """
    try:
        nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
        with TemporaryFile(dir=nearest, prefix=".probe-", buffering=0) as file:
            file.write(b"\0" * PROBE_BYTES)
    except OSError as error:
        if error.errno in OUT_OF_SPACE:
            message = f"{name}: the disk of {folder} is full; free some space, or choose another"
            raise CuaTrainError(message) from None
        message = f"{name}: {folder} cannot be used: {_reason(folder, error)}; choose another"
        raise UsageError(message) from None


def _reason(folder: Path, error: OSError) -> str:
    if error.errno == errno.ENAMETOOLONG:
        return "the name is too long"
    blocking = next((parent for parent in (folder, *folder.parents) if parent.exists()), folder)
    if not blocking.is_dir():
        return f"{blocking} is a file, not a folder"
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return f"no permission to write in {blocking}"
    if error.errno == errno.ENOENT:
        return f"no folder can be made in {blocking}"
    return error.strerror or str(error)
