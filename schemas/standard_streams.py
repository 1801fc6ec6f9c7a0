"""Standard output and standard error of a command line, where they are absent or nobody reads."""

import os
import sys
from pathlib import Path
from typing import NoReturn


def open_missing_streams() -> None:
    """Open the null device as stdout or stderr if the process was started without it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Open until the process ends.
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115


def exit_as_asked(error: SystemExit) -> NoReturn:
    """End the process; with 0 where the reader of our output (head, less) has exited.

    click and rich exit with 1 then.
    """
    if not isinstance(error.__context__, BrokenPipeError):
        raise error
    discard_output()
    sys.exit(0)


def flush_output() -> None:
    """Write what is buffered for stdout; nothing where its reader has exited. Raises OSError.

    Without it the interpreter meets a closed pipe or a full disk at its end: it prints "Exception
    ignored" and exits with 120.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()


def flush_or_discard() -> None:
    """Write what is buffered for stdout, or discard it if that fails: after an error was told."""
    try:
        sys.stdout.flush()
    except OSError:
        discard_output()


def discard_output() -> None:
    """Send what is still written to stdout to the null device, also by the interpreter's end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
