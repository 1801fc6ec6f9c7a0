"""Paths that the operating system cannot take, told in a sentence at both commands' boundary.

Every setting, field and file may name a path; what is wrong with it is found where it is used. The
interpreter is one of them: commands start processes of their own with it.
"""

import errno
import sys
from typing import Final

MOST_SHOWN: Final = 80
"""Characters of a path in the message."""
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
