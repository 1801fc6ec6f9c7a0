"""Pytest plugin of the process that started the tests: on SIGTERM it names those under way.

`.ci/run` ends whatever takes longer than its deadline with SIGTERM. A suite that hangs is then
known by the tests that had begun and not ended, in whichever worker.
"""

import os
import signal
import sys
from types import FrameType

import pytest


class RunningTests:
    """Follows the tests of every worker. On SIGTERM it prints those under way and ends the process.

    Not thread-safe; hooks and signal handlers run in the main thread.
    """

    def __init__(self) -> None:
        self._running: dict[str, None] = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running[nodeid] = None

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._running.pop(nodeid, None)

    def stop(self, number: int, _frame: FrameType | None) -> None:
        """Print the tests under way on stderr, then die of the signal."""
        names = "".join(f"\n    {nodeid}" for nodeid in self._running) or " no test"
        # Not print(): the signal may come while its buffer is being written.
        os.write(2, f"\nstopped by SIGTERM; running:{names}\n".encode())
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def pytest_configure(config: pytest.Config) -> None:
    """Only in the process that the user started: xdist's workers report to it."""
    if hasattr(config, "workerinput") or sys.platform == "win32":
        return
    running = RunningTests()
    config.pluginmanager.register(running, "running-tests")
    signal.signal(signal.SIGTERM, running.stop)
