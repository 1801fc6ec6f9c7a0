"""Another program in place of this process: the terminal, signals and the exit code are its own."""

import os
from collections.abc import Mapping
from typing import NoReturn

from consumers.errors import UsageError
from schemas.path_errors import not_executed


def run_in_our_place(words: list[str], environ: Mapping[str, str]) -> NoReturn:
    """Run the command; returns never. UsageError when the program cannot be executed."""
    try:
        os.execve(words[0], words, environ)  # noqa: S606  # no shell
    except OSError as error:
        raise UsageError(not_executed(words[0], error)) from None
