"""A process for tests to stop: takes one lock of its installation, says so and stops itself.

Called as `python -m tests.support.stopped_process LOCK`, LOCK being `write`, `shipper`, `create` or
the path of a lock file; the environment describes its installation. After SIGCONT it lets go.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from filelock import FileLock

from producer.log.event_log import EventLog
from schemas.installation import read_installation
from tests.support.paths import ROOT

HELD = "held"


def main() -> None:
    """Take the lock, print `held`, stop; go on and exit."""
    lock = sys.argv[1]
    installation = read_installation(os.environ)
    if lock == "write":
        with closing(sqlite3.connect(installation.local_log_path, isolation_level=None)) as file:
            file.execute("BEGIN IMMEDIATE")
            file.execute("UPDATE head SET appended_at = appended_at + 1")
            _stop()
            file.execute("COMMIT")
    elif lock == "shipper":
        log = EventLog.open(installation)
        while not (installation.local_log_path.parent / "shipper.lease").exists():
            time.sleep(0.01)
        _stop()
        time.sleep(1.0)
        log.close(10.0)
    else:
        with FileLock(lock):
            _stop()


def _stop() -> None:
    sys.stdout.write(f"{HELD}\n")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGSTOP)


@contextmanager
def stopped_process(
    lock: str | Path, environ: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """A process that holds this lock and is stopped; killed at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.stopped_process", str(lock)],
        cwd=ROOT,
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline().strip() == HELD
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        yield process
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


if __name__ == "__main__":
    main()
