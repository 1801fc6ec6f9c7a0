"""Runs the command `cua-project` for a trainer, which knows no database but can use its answers.

The command runs as a separate process within a time limit and ends with its caller.
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
    """The command did not answer; the message is the reason."""


def ask_project(
    words: Sequence[str],
    limit_s: float,
    stop: threading.Event | None = None,
    environ: Mapping[str, str] | None = None,
) -> str:
    """The output of `cua-project` with these arguments. `environ` extends this process's own.

    Raises NoAnswerError if it fails (with its last line on stderr), is not installed or exceeds
    `limit_s`, and StopRequestedError once `stop` is set.
    """
    if find_spec("sqlalchemy") is None or find_spec("psycopg2") is None:
        command = install_command("project", "database")
        message = f"cua-project is not installed here; run {command}"
        raise NoAnswerError(message)
    # In a new session, Ctrl-C reaches this process alone.
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
