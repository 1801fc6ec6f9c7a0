"""Runs `cua-project up` as a child process of a run: database, projector and monitor.

The producer imports none of it. Training waits for it only at the end, and never fails because of
it.
"""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from importlib.util import find_spec
from urllib.parse import urlsplit

from producer.commands.shell import cua_project_command
from producer.log_lines import log_flags
from schemas import ids
from schemas.distribution import install_command

logger = logging.getLogger(__name__)

CATCH_UP_TIMEOUT_S = 120.0
START_TIMEOUT_S = 60.0
"""Time to wait for its first line of output. Before that it may not handle signals yet, and SIGTERM
would kill it before the tables have caught up."""


class CuaProject:
    """The child process.

    Not thread-safe. `stop` is idempotent and may be called without `start`.
    """

    def __init__(self, training_name: str) -> None:
        """`training_name` is the training whose page is logged when the monitor ends."""
        self._training_name = training_name
        self._monitor: str | None = None
        self._process: subprocess.Popen[str] | None = None
        self._announcing: threading.Thread | None = None

    def start(self) -> None:
        """Start the process and return. Logs the addresses of tables and monitor once it is up."""
        if find_spec("sqlalchemy") is None or find_spec("psycopg2") is None:
            logger.info(
                "no tables and no monitor: run %s, or run `cua-project up` on another host that"
                " reads the same log",
                install_command("project", "database"),
            )
            return
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "consumers", *log_flags()),
                # If this process is killed, the child catches up and then ends by itself.
                *("up", "--json", "--while-pid", str(os.getpid())),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            # On a terminal, this process prints the child's log lines above the progress bar.
            stderr=subprocess.PIPE if sys.stderr.isatty() else None,
            text=True,
            # In a new session Ctrl-C reaches only the trainer, which stops the child last.
            start_new_session=True,
        )
        self._announcing = threading.Thread(
            target=self._announce, args=(self._process,), name="cua-project", daemon=True
        )
        self._announcing.start()
        threading.Thread(
            target=_copy_log_lines, args=(self._process,), name="cua-project log", daemon=True
        ).start()

    def _announce(self, process: "subprocess.Popen[str]") -> None:
        line = process.stdout.readline() if process.stdout is not None else ""
        try:
            self._monitor = json.loads(line)["monitor"]
        except (json.JSONDecodeError, KeyError):
            logger.warning(
                "no tables and no monitor: cua-project up did not start; training continues, and"
                " `%s` catches up at any time",
                cua_project_command("up"),
            )
            return
        logger.info("monitor: %s", self._monitor)
        logger.info("tables:  %s", cua_project_command("psql"))

    def stop(self) -> None:
        """End the process once it has read the whole log.

        Logs the command that reopens its page.
        """
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
            logger.warning(
                "the tables are still behind after %.0f s; `%s` catches up",
                CATCH_UP_TIMEOUT_S,
                cua_project_command("run", "--once"),
            )
        if self._monitor is not None:
            port = str(urlsplit(self._monitor).port)
            logger.info(
                "the monitor has ended with this command; reopen it with: %s -> %straining/%s",
                cua_project_command("up", "--port", port),
                *(self._monitor, ids.training_id(self._training_name)),
            )


def _copy_log_lines(process: "subprocess.Popen[str]") -> None:
    for line in process.stderr or ():
        sys.stderr.write(line)
