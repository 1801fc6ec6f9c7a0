"""Standard output and standard error of a command line, where they are absent or nobody reads."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

STDOUT: Final = "standard output"
"""In messages, in place of a file's name."""


def open_missing_streams() -> None:
    """Open the null device as stdout or stderr if the process was started without it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Open until the process ends.
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115


def name_stdout_in_errors() -> None:
    """Have errors of stdout name it, as those of opening a file name the file.

    Not where a program that calls the command line has replaced stdout.
    """
    out = sys.stdout
    if out is sys.__stdout__ and isinstance(out, io.TextIOWrapper):
        sys.stdout = _Stdout(
            out.buffer,
            encoding=out.encoding,
            errors=out.errors,
            line_buffering=out.line_buffering,
            write_through=out.write_through,
        )


class _Stdout(io.TextIOWrapper):
    def write(self, text: str, /) -> int:
        with _naming():
            return super().write(text)

    def flush(self) -> None:
        with _naming():
            super().flush()


@contextmanager
def _naming() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = STDOUT
        raise


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
