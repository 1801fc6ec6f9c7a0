"""Paths that the operating system cannot use, and full disks, told in a sentence.

Every setting, field and file may name a path; what is wrong with it is found where it is used. The
interpreter is one of them: commands start processes of their own with it.
"""

import errno
import sys
from pathlib import Path
from typing import Final

MOST_SHOWN: Final = 80
"""Characters of a path in the message."""
OUT_OF_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Error numbers of the operating system for a full disk or quota."""
LOOP: Final = "is part of a loop of symbolic links; give another path"
TOO_LONG: Final = "is too long, or has a name that is too long; give a shorter path"


def path_problem(error: Exception) -> str | None:
    """What is wrong with a path; None: the error is of another kind."""
    if isinstance(error, RuntimeError):  # pathlib's own
        text = str(error)
        if "home directory" in text:
            return "cannot expand ~: no such user, or no home directory; write the path in full"
        if text.startswith("Symlink loop from "):
            return f"{_named(text.removeprefix('Symlink loop from '))} {LOOP}"
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return f"{_named(error.filename)} {LOOP}"
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return f"{_named(error.filename)} {TOO_LONG}"
    if isinstance(error, OSError) and error.filename == sys.executable:
        return not_executed(sys.executable, error)
    return None


def full_disk(error: Exception) -> str | None:
    """That the disk is full; None: the error is of another kind."""
    if not isinstance(error, OSError) or error.errno not in OUT_OF_SPACE:
        return None
    where = f" ({error.filename})" if error.filename else ""
    return f"the disk is full{where}; free some space, then run the same command again"


def unusable_folder(folder: Path, error: OSError) -> str:
    """Why a file cannot be made in a folder, which may not exist yet."""
    if error.errno == errno.ENAMETOOLONG:
        return "the name is too long"
    existing = next((parent for parent in (folder, *folder.parents) if parent.exists()), folder)
    if not existing.is_dir():
        return f"{existing} is a file, not a folder"
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return f"no permission to write in {existing}"
    if error.errno == errno.ENOENT:
        return f"no folder can be made in {existing}"
    return error.strerror or str(error)


def not_executed(program: str, error: OSError) -> str:
    """That a program, by its path, could not be started, and why."""
    return (
        f"{program} cannot be executed: {error.strerror}; correct the rights of the file and of the"
        " folders above it, or use an installation that this user may execute"
    )


def _named(path: object) -> str:
    if path is None:
        return "a path"
    text = str(path).strip("'\"")
    return repr(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}...")
