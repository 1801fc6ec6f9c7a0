"""Starts the consuming side (`cua-project up`) as a process of its own, and lets it catch up at the end. Imports nothing of it."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib.util import find_spec

CATCH_UP_TIMEOUT_S = 120.0
START_TIMEOUT_S = 60.0
"""A process that has not announced itself may not hear signals yet: a SIGTERM would end it with the
tables behind."""


class ConsumingSide:
    """The child process. Training never waits for it but at the very end, and never fails because of it."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._process: subprocess.Popen[str] | None = None
        self._announcing: threading.Thread | None = None

    def start(self) -> None:
        """Start it and say where the tables and the monitor are.

        Without the extra `project` say how to have them.
        """
        if find_spec("sqlalchemy") is None or find_spec("psycopg2") is None:
            self._report(
                "tables and monitor: not installed here (cua-train[project,database]); cua-project"
                " up on another host reads the same log"
            )
            return
        self._process = subprocess.Popen(
            # It ends by itself, caught up, when this process is killed.
            [
                sys.executable,
                "-P",
                "-m",
                "consumers",
                "up",
                "--json",
                "--while-pid",
                str(os.getpid()),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None,
            text=True,
            # In a session of its own, so that Ctrl-C reaches the trainer alone, which then stops
            # this one in order.
            start_new_session=True,
            env=dict(os.environ),
        )
        self._announcing = threading.Thread(
            target=self._announce, args=(self._process,), name="consuming-side", daemon=True
        )
        self._announcing.start()

    def _announce(self, process: "subprocess.Popen[str]") -> None:
        """Say where to look once it is up; until then the training goes on."""
        line = process.stdout.readline() if process.stdout is not None else ""
        try:
            monitor = json.loads(line)["monitor"]
        except (json.JSONDecodeError, KeyError):
            self._report(
                "tables and monitor: cua-project up did not start; training goes on, and"
                " cua-project up catches up later"
            )
            return
        self._report(f'monitor: {monitor}\ntables:  psql "$(cua-project database)"')

    def stop(self) -> None:
        """Let it read to the log's end, then end it."""
        process = self._process
        if process is None or self._announcing is None or process.poll() is not None:
            return
        self._announcing.join(START_TIMEOUT_S)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(CATCH_UP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self._report(
                f"tables: the projector was still behind after {CATCH_UP_TIMEOUT_S:.0f} s;"
                " cua-project run --once catches up"
            )
