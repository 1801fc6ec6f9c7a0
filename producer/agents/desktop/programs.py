"""The programs that a desktop needs, and whether this machine has them."""

import shutil
import sys
from importlib.util import find_spec
from typing import Final

from producer.errors import UsageError
from schemas.distribution import install_command

PACKAGES: Final = {
    "Xvfb": "xvfb",
    "jwm": "jwm",
    "l3afpad": "l3afpad",
    "galculator": "galculator",
    "pcmanfm": "pcmanfm",
}
"""Maps a program to its package in Debian and Ubuntu."""


def missing_programs() -> list[str]:
    """The programs that are not installed."""
    return [program for program in PACKAGES if shutil.which(program) is None]


def install_line(programs: list[str]) -> str:
    """The command that installs them."""
    packages = " ".join(PACKAGES[program] for program in programs)
    return f"on Debian or Ubuntu: sudo apt-get install {packages}"


def check_programs() -> None:
    """Raise UsageError if a program or the display's client library is missing."""
    if sys.platform != "linux":
        message = "the environment desktop needs Linux"
        raise UsageError(message)
    if find_spec("Xlib") is None:
        message = "the environment desktop needs the Python package python-xlib"
        raise UsageError(message, ways=(f"run {install_command('desktop')}",))
    if missing := missing_programs():
        message = f"the environment desktop needs {', '.join(missing)}"
        raise UsageError(message, ways=(install_line(missing),))
