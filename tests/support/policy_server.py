"""`cua-train serve` as a process of its own, which can be killed and started again on its port."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.forked_process import ForkedProcess
from tests.support.ports import free_port


class PolicyServer:
    """A server of one policy folder."""

    def __init__(self, folder: Path, name: str | None = None, key: str | None = None) -> None:
        self._folder = folder
        self._name = name or str(folder)
        self._environ = {} if key is None else {"OPENAI_API_KEY": key}
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._process: ForkedProcess | None = None

    def start(self) -> None:
        """Returns once it listens."""
        words = ("serve", "--model-name", str(self._folder), "--name", self._name)
        with TemporaryDirectory() as folder:
            stderr = Path(folder, "stderr")
            os.mkfifo(stderr)
            self._process = ForkedProcess(
                "producer",
                *(*words, "--port", str(self.port)),
                environ=self._environ,
                stderr=str(stderr),
            )
            with stderr.open() as lines:
                line = lines.readline()
                assert f"at {self.url}" in line, line + lines.read()

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process = None


@contextmanager
def policy_server(
    folder: Path, name: str | None = None, key: str | None = None
) -> Iterator[PolicyServer]:
    """A running server that ends with the block."""
    server = PolicyServer(folder, name, key)
    server.start()
    try:
        yield server
    finally:
        server.kill()
