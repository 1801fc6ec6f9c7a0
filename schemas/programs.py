"""Our two commands as every shell finds them, for messages and printed lines."""

import os
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from schemas.distribution import DISTRIBUTION

MODULES = {"cua-train": "producer", "cua-project": "consumers"}
EVERY_SHELL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH of every shell. A virtual environment is on the PATH of one shell only."""
ENV = "env"
"""Sets variables. `timeout`, `nice` and `sudo` take a bare NAME=VALUE for a program."""


def program(name: str) -> str:
    """One of our two commands: its name if every shell finds it, else its path."""
    for folder in (Path(sys.argv[0]).absolute().parent, Path(sys.executable).parent):
        own = folder / name
        if os.access(own, os.X_OK):
            found = shutil.which(name, path=EVERY_SHELL_PATH)
            is_found = found is not None and Path(found).samefile(own)
            return name if is_found else shlex.quote(str(own))
    # -P avoids importing a folder named `schemas` from the working folder.
    words = shlex.join([sys.executable, "-P", "-m", MODULES[name]])
    try:
        distribution(DISTRIBUTION)
    except PackageNotFoundError:  # a checkout that is not installed
        return f"{ENV} PYTHONPATH={shlex.quote(str(Path(__file__).parents[1]))} {words}"
    return words
