"""A server in an environment of its own below .services: installed once, ended with its group."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.support.paths import ROOT

UV = Path(sys.executable).with_name("uv")


def services(name: str) -> Path:
    """The folder of an installed service; its parent exists."""
    folder = ROOT / ".services" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder


class ServerProcess:
    """A server's process and those that it starts; `command` and `environment` are of its start."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        health_url: str,
        log: Path,
        start_s: float,
    ) -> None:
        self._command, self._environment = list(command), dict(environment)
        self._health_url, self._log, self._start_s = health_url, log, start_s
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns once it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env={**os.environ, **self._environment},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + self._start_s
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(self._log.read_text()[-4000:])
            time.sleep(1)

    def _answers(self) -> bool:
        try:
            return httpx.get(self._health_url, timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        """SIGKILL to all of its processes: an engine would outlive the server for a minute."""
        if self._process is not None:
            with suppress(ProcessLookupError):  # it ended by itself
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
