"""Processes that need not import torch and may be killed: forks of one that has imported it.

A process spends most of the processor time of a small training or a small server on imports.
`python -m tests.support.forked_process` is the process that forks.
"""

import atexit
import contextlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self, TypedDict

import psutil

from tests.support.paths import ROOT

IMPORTED = (
    *("producer.cli", "producer.policy.torch_policy.open", "producer.training.run"),
    *("producer.training.loop", "producer.resume.open_training", "producer.serve.app"),
)
"""Before the first fork. No gradient may be computed there: a fork could compute none."""


class _Request(TypedDict):
    module: str
    words: list[str]
    environ: dict[str, str]
    stdout: str
    stderr: str


class ForkedProcess:
    """`python -m MODULE WORDS`, killed when the block ends."""

    def __init__(
        self,
        module: str,
        *words: str,
        environ: Mapping[str, str] | None = None,
        stdout: str = os.devnull,
        stderr: str = os.devnull,
    ) -> None:
        """`environ`: beside this process's. `stdout`, `stderr`: files that exist."""
        self._pid = _server().fork(
            _Request(
                module=module,
                words=list(words),
                environ={**os.environ, "OMP_NUM_THREADS": "1", **(environ or {})},
                stdout=stdout,
                stderr=stderr,
            )
        )
        self._process = os.pidfd_open(self._pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
        os.close(self._process)

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return not select.select([self._process], [], [], 0)[0]

    def wait(self) -> None:
        """Until it has ended."""
        select.select([self._process], [], [])

    def kill(self) -> None:
        """SIGKILL; returns once it has ended."""
        self._send(signal.SIGKILL)
        self.wait()

    def halt(self) -> None:
        """Returns once no thread of it runs, or it has ended."""
        self._send(signal.SIGSTOP)
        with contextlib.suppress(psutil.NoSuchProcess):
            while self.is_running() and psutil.Process(self._pid).status() != psutil.STATUS_STOPPED:
                time.sleep(0.001)

    def go_on(self) -> None:
        """After `halt`."""
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        if self.is_running():
            signal.pidfd_send_signal(self._process, number)


def forked_training(
    home: Path, settings: dict[str, Any], slow: dict[str, float] | None = None
) -> ForkedProcess:
    """Trains in the folder `home`; `slow`: as keywords of `Slow`."""
    words = (json.dumps(settings), json.dumps(slow or {}))
    return ForkedProcess("tests.support.slow_run", *words, environ={"CUA_HOME": str(home)})


class _Server:
    """The process that forks."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.support.forked_process"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self._process.kill)

    def fork(self, request: _Request) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@lru_cache(maxsize=1)
def _server() -> _Server:
    return _Server()


def _serve() -> None:
    for name in IMPORTED:
        import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # its forks leave no zombies
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            _become(json.loads(line))
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


def _become(request: _Request) -> NoReturn:
    """Turn this fork into the process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, path in ((0, os.devnull), (1, request["stdout"]), (2, request["stderr"])):
        opened = os.open(path, os.O_WRONLY if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv = [request["module"], *request["words"]]
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    _serve()
