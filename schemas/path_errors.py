"""Paths that the operating system cannot take, told in a sentence at both commands' boundary.

Every setting, field and file may name a path; what is wrong with it is found where it is used.
"""

import errno
from typing import Final

MOST_SHOWN: Final = 80
"""Characters of a path in the message."""
LOOP: Final = "is a symbolic link that leads to itself; give another path"


def path_problem(error: Exception) -> str | None:
    """What is wrong with a path that the user gave; None: the error is of another kind."""
    if isinstance(error, RuntimeError):  # pathlib's own
        text = str(error)
        if "home directory" in text:
            return "a path begins with ~ and the name of no user; write the folder in full"
        if text.startswith("Symlink loop from "):
            return f"{_named(text.removeprefix('Symlink loop from '))} {LOOP}"
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return f"{_named(error.filename)} {LOOP}"
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return f"{_named(error.filename)} is longer than a path may be; give another path"
    return None


def _named(path: object) -> str:
    text = str(path).strip("'\"")
    return repr(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}...")
