"""The programs of a desktop, and whether this machine has them."""

import shutil
import sys
from importlib.util import find_spec
from typing import Final

from producer.errors import NotFoundError
from schemas.distribution import install_command

PACKAGES: Final = {
    "Xvfb": "xvfb",
    "jwm": "jwm",
    "l3afpad": "l3afpad",
    "galculator": "galculator",
    "pcmanfm": "pcmanfm",
}
"""Program -> the package of Debian and Ubuntu that has it."""


def missing_programs() -> list[str]:
    """Those that are not installed."""
    return [program for program in PACKAGES if shutil.which(program) is None]


def install_line(programs: list[str]) -> str:
    """How to install them."""
    packages = " ".join(PACKAGES[program] for program in programs)
    return f"on Debian or Ubuntu: sudo apt-get install {packages}"


def check_programs() -> None:
    """NotFoundError where one, or the client of the display, is missing."""
    if sys.platform != "linux":
        message = "the environment desktop needs Linux"
        raise NotFoundError(message)
    if find_spec("Xlib") is None:
        message = "the environment desktop needs the Python package python-xlib"
        raise NotFoundError(message, ways=(f"run {install_command('desktop')}",))
    if missing := missing_programs():
        message = f"the environment desktop needs {', '.join(missing)}"
        raise NotFoundError(message, ways=(install_line(missing),))
