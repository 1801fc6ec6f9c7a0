"""Commands in processes of their own that need not import anything: forks of one that has.

A command spends most of its processor time on imports. It still has its own folder, environment,
streams and exit code. Not for tests of signals, pipes, terminals or of what a command imports.
"""

import atexit
import gc
import json
import os
import runpy
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from typing import Literal, NoReturn, TypedDict

import consumers
from tests.support.paths import ROOT

Program = Literal["producer", "consumers"]
# Before the first fork, with all other modules of `consumers`; a command imports what is missing.
IMPORTED = (
    *("producer.cli", "producer.commands.run", "producer.commands.evaluate"),
    *("producer.training.run", "producer.training.loop", "producer.resume.open_training"),
    *("sqlalchemy.dialects.postgresql.psycopg2", "alembic.command"),
)
LEFT_OUT = {"__main__", "archive", "export", "trackers"}
"""Parts of `consumers` with large libraries of their own."""


class _Request(TypedDict):
    program: Program
    words: list[str]
    folder: str
    environ: dict[str, str]
    stdout: str
    stderr: str
    timeout_s: float


def run_command(
    program: Program,
    *words: str,
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
    timeout_s: float = 120,
) -> "subprocess.CompletedProcess[str]":
    """What `python -m PROGRAM WORDS` prints, without a terminal. TimeoutError.

    `environ` None: this process's own.
    """
    with TemporaryDirectory() as streams:
        out, err = Path(streams, "out"), Path(streams, "err")
        request = _Request(
            program=program,
            words=list(words),
            folder=str(folder or Path.cwd()),
            environ=dict(os.environ if environ is None else environ),
            stdout=str(out),
            stderr=str(err),
            timeout_s=timeout_s,
        )
        code = _server().call(request)
        stdout, stderr = out.read_text("utf-8"), err.read_text("utf-8")
    if code is None:
        message = f"{program} {words} did not end in {timeout_s:g} s\n{stdout}\n{stderr}"
        raise TimeoutError(message)
    return subprocess.CompletedProcess([program, *words], code, stdout, stderr)


class _Server:
    """The process that forks, one command at a time. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.support.forked_command"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self._process.kill)

    def call(self, request: _Request) -> int | None:
        """The exit code; None: it took too long and was killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            code: int | None = json.loads(self._process.stdout.readline())
        return code


@lru_cache(maxsize=1)
def _server() -> _Server:
    return _Server()


def _serve() -> NoReturn:
    """Fork for every request of stdin; never returns, in the child either."""
    modules = walk_packages(consumers.__path__, "consumers.")
    ours = [module.name for module in modules if not LEFT_OUT & {*module.name.split(".")}]
    for name in (*IMPORTED, *ours):
        import_module(name)
    answers = os.fdopen(os.dup(1), "w")
    # A child's collector would write to, and so copy, every page that it shares.
    gc.freeze()
    while line := sys.stdin.readline():
        request: _Request = json.loads(line)
        child = os.fork()
        if child == 0:
            answers.close()
            _become(request)
        answers.write(json.dumps(_wait(child, request["timeout_s"])) + "\n")
        answers.flush()
    sys.exit()


def _wait(child: int, timeout_s: float) -> int | None:
    until_s = time.monotonic() + timeout_s
    pause_s = 0.001
    while time.monotonic() < until_s:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause_s)
        pause_s = min(0.02, pause_s * 1.5)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return None


def _become(request: _Request) -> NoReturn:
    """Turn this fork into the command."""
    os.chdir(request["folder"])
    for number, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, request["stdout"], os.O_WRONLY | os.O_CREAT),
        (2, request["stderr"], os.O_WRONLY | os.O_CREAT),
    ):
        opened = os.open(path, flags)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    os.environ.clear()
    os.environ.update(request["environ"])
    time.tzset()
    sys.path[:] = [path for path in sys.path if path != str(ROOT)]
    sys.path.insert(0, request["folder"])
    sys.argv = [f"-m {request['program']}", *request["words"]]
    runpy.run_module(request["program"], run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    _serve()
