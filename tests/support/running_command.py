"""`cua-project` as a process of its own: what it says while it works, and how it ends."""

import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from queue import Empty, Queue
from typing import IO

SAID_WITHIN_S = 30
"""What is said after some seconds; starting a process on a busy machine takes as long again."""


class Command:
    """One process."""

    def __init__(
        self,
        words: Sequence[str],
        environ: Mapping[str, str],
        stdout: int | IO[bytes] = subprocess.DEVNULL,
    ) -> None:
        """`stdout`: where it writes what is no message."""
        self._lines: Queue[str] = Queue()
        self._said: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "consumers", *words],
            env=environ,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._said.append(line)
            self._lines.put(line)

    def says(self, text: str, within_s: float = SAID_WITHIN_S) -> str:
        """The line that has this text."""
        deadline = time.monotonic() + within_s
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                message = f"it did not say {text!r}, but {self._said}"
                raise AssertionError(message) from None
            if text in line:
                return line

    def wait(self, within_s: float) -> int:
        """Its exit code, when it has ended by itself."""
        code = self.process.wait(within_s)
        self._reading.join(10)
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code

    @property
    def said(self) -> str:
        """Everything on stderr so far."""
        return "".join(self._said)
