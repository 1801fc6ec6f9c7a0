"""Asks the command `cua-project`: a trainer knows no database, and what the tables say helps it.

It runs as a process of its own, within a time limit, and ends with its caller.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

from producer.errors import StopRequestedError
from schemas.distribution import install_command

POLL_S = 0.1


class NoAnswerError(Exception):
    """The command did not answer; the text is the reason."""


def ask_project(
    words: Sequence[str],
    limit_s: float,
    stop: threading.Event | None = None,
    environ: Mapping[str, str] | None = None,
) -> str:
    """The output of `cua-project` with these arguments; `environ` is added to this process's own.

    NoAnswerError when it fails, with its last line on stderr, when it is not installed, or after
    `limit_s`; StopRequestedError once `stop` is set.
    """
    if find_spec("sqlalchemy") is None or find_spec("psycopg2") is None:
        command = install_command("project", "database")
        message = f"cua-project is not installed here; run {command}"
        raise NoAnswerError(message)
    # A session of its own: Ctrl-C reaches this process alone.
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "consumers", "-q", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=os.environ | dict(environ or {}),
        start_new_session=True,
    ) as process:
        deadline = time.monotonic() + limit_s
        try:
            while True:
                try:
                    out, err = process.communicate(timeout=POLL_S)
                    break
                except subprocess.TimeoutExpired:
                    if stop is not None and stop.is_set():
                        raise StopRequestedError from None
                    if time.monotonic() > deadline:
                        message = f"cua-project did not answer within {limit_s:.0f} s"
                        raise NoAnswerError(message) from None
        except BaseException:
            process.kill()
            process.communicate()
            raise
    if process.returncode:
        lines = err.strip().splitlines()
        raise NoAnswerError(lines[-1] if lines else f"exit code {process.returncode}")
    return out
