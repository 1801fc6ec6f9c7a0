"""A running desktop: its keeper, commands in its shell, and the time limits of calls."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Timer
from typing import Any, Final

from producer.agents.desktop import keeper
from producer.agents.desktop.home import environment_of, make_folder, user
from producer.environments.environment import EnvironmentFailedError

ANSWER_LIMIT_S: Final = 20.0
"""A display or a command that takes longer has failed."""
START_LIMIT_S: Final = 60.0
CLOSE_S: Final = 8.0
"""Time for the keeper to end everything; after that it is killed, and the display with it."""


class Session:
    """One desktop. Used by one thread at a time; any thread may call `close`.

    Every method except `close` raises EnvironmentFailedError within its time limit.
    """

    def __init__(self, size_px: tuple[int, int], limit_s: float = ANSWER_LIMIT_S) -> None:
        """Start the desktop."""
        self._limit_s = limit_s
        self._closing = Lock()
        self._is_late = False
        try:
            self.folder: Path = make_folder()
        except OSError as error:
            message = f"the desktop's folder cannot be made: {error}"
            raise EnvironmentFailedError(message) from error
        setting = {
            "folder": str(self.folder),
            "env": environment_of(self.folder),
            "size": "{}x{}".format(*size_px),
            "limit_s": limit_s / 2,
            "window_manager": ["jwm"],
            "user": user(),
        }
        # -S -I: it needs nothing of the user's. The new session shields it from the terminal's
        # Ctrl-C.
        self._process = subprocess.Popen(
            [*(sys.executable, "-S", "-I", keeper.__file__), json.dumps(setting), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self.display: str = f":{self._answer(START_LIMIT_S)['display']}"
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Process id of the keeper, the ancestor of all processes of the desktop."""
        return self._process.pid

    def run(self, command: str) -> tuple[int, str]:
        """Run a shell command in the home folder. Returns exit status and output."""
        answer = self._ask(command)
        if answer.get("is_late"):
            message = f"{command!r} did not end within {self._limit_s / 2:g} s"
            raise EnvironmentFailedError(message)
        return int(answer["status"]), str(answer["text"])

    def check(self) -> None:
        """Check that the desktop is alive.

        Raises EnvironmentFailedError if the display or the window manager has ended, or if a signal
        ended an application.
        """
        if ended := self._ask("")["ended"]:
            message = f"the desktop failed: {'; '.join(ended)}"
            raise EnvironmentFailedError(message)

    @contextmanager
    def limited(self, what: str, limit_s: float | None = None) -> Iterator[None]:
        """Close the desktop if the block takes longer than `limit_s`, so that its calls fail."""
        limit_s = self._limit_s if limit_s is None else limit_s
        timer = Timer(limit_s, self._give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        except Exception as error:
            if self._is_late:
                message = f"{what} did not answer within {limit_s:g} s"
                raise EnvironmentFailedError(message) from error
            raise
        finally:
            timer.cancel()

    def close(self) -> None:
        """End everything that was started and remove the folder. Idempotent."""
        with self._closing:
            process = self._process
            if process.stdin is not None:
                with suppress(OSError):
                    process.stdin.close()
            try:
                process.wait(CLOSE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _give_up(self) -> None:
        self._is_late = True
        self.close()

    def _ask(self, command: str) -> dict[str, Any]:
        try:
            assert self._process.stdin is not None  # noqa: S101  # it is a pipe
            self._process.stdin.write(json.dumps({"run": command}).encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            message = "the desktop has ended"
            raise EnvironmentFailedError(message) from error
        return self._answer(self._limit_s)

    def _answer(self, limit_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None  # noqa: S101  # it is a pipe
        with self.limited("the desktop", limit_s):
            line = self._process.stdout.readline()
            if not line:
                message = "the desktop has ended"
                raise EnvironmentFailedError(message)
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise EnvironmentFailedError(answer["error"])
        return answer
