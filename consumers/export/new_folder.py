"""The folder of an export: whole, or not there. It replaces nothing."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consumers.errors import UsageError


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into; it gets its name at the end, or is removed after a failure.

    An empty folder that is there (a mounted volume, the working folder) stays itself and gets the
    files at the end. UsageError when the folder is not empty, or cannot be made, or when an
    unfinished one is next to it.
    """
    try:
        is_there = folder.exists()
        partial = folder / ".partial" if is_there else folder.with_name(folder.name + ".partial")
        if is_there and (not folder.is_dir() or set(folder.iterdir()) - {partial}):
            message = f"{folder} exists and is not an empty folder; name a new one"
            raise UsageError(message)
        if partial.exists() or partial.is_symlink():
            message = (
                f"{partial} is in the way: an export that was killed left it, or it is yours;"
                " remove it, or name another folder"
            )
            raise UsageError(message)
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
    except OSError as error:
        message = f"the folder {folder} cannot be made: {error.strerror}; name another one"
        raise UsageError(message) from None
    try:
        yield partial
        if is_there:
            for path in sorted(partial.iterdir(), reverse=True):
                path.rename(folder / path.name)
            partial.rmdir()
        else:
            partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
