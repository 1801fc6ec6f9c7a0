"""A file that a command writes: whole, or as it was before."""

import os
from pathlib import Path

from consumers.errors import UsageError
from schemas.path_errors import OUT_OF_SPACE


def refuse_existing(path: Path) -> None:
    """UsageError when something has this name."""
    if os.path.lexists(path):
        message = f"{path} exists; name another file, or give --overwrite to replace it"
        raise UsageError(message)


def write_whole(path: Path, text: str) -> int:
    """Write the text under another name, sync it, and rename it; its size in bytes.

    UsageError when the folder takes no file, or a folder has the name. OSError: the disk is full.
    """
    if path.is_dir():
        message = f"{path} is a folder; name a file"
        raise UsageError(message)
    content = text.encode()
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        try:
            with unfinished.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        if error.errno in OUT_OF_SPACE:
            raise
        message = f"{path} cannot be written: {error.strerror}; name another file"
        raise UsageError(message) from None
    return len(content)
