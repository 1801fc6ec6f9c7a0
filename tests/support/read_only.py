"""Folders that a process may read and not write, also where tests run as root."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

CAPABILITIES = "-dac_override,-dac_read_search,-fowner"
"""By which root writes what its rights forbid."""


@cache
def _words_before() -> tuple[str, ...] | None:
    """What starts a command that heeds rights; None: nothing does."""
    if os.geteuid():
        return ()
    words = ("setpriv", "--bounding-set", CAPABILITIES)
    if shutil.which(words[0]) is None:
        return None
    done = subprocess.run([*words, "true"], capture_output=True, check=False)
    return words if done.returncode == 0 else None


def heeding_rights(command: Sequence[str]) -> list[str]:
    """The command, started so that rights count for it. Skips the test where that is impossible."""
    words = _words_before()
    if words is None:
        pytest.skip("root, and no setpriv that drops capabilities")
    return [*words, *command]


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Everything in the folder may be read, and nothing written."""
    paths = [folder, *folder.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        yield
    finally:
        for path, mode in modes.items():
            if path.exists():
                path.chmod(mode)
