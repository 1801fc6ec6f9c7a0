"""The process that sends what waits in this machine's spool.

Sending is the producer's. Its command runs as a process of its own, because neither side imports
the other.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from consumers.blobs import local_folder
from consumers.diagnostics import log_flags
from schemas.installation import Installation

END_S = 10.0
"""The sending process ends within a second of being asked to."""


def is_sent(installation: Installation) -> bool:
    """Whether records of this home are sent anywhere: to Kafka, or their blobs to a store."""
    is_remote = installation.kafka_bootstrap_servers is not None
    return is_remote or local_folder(installation.blobs_url) is None


def ship_command(*words: str, quiet: bool = False) -> list[str]:
    """The command that sends; `quiet`: with warnings and errors alone."""
    return [sys.executable, "-P", "-m", "producer", *log_flags(quiet=quiet), "ship", *words]


@contextmanager
def shipping(installation: Installation) -> Iterator[None]:
    """Send what trainers of this home leave in its spool, for the length of the block."""
    if not is_sent(installation):
        yield
        return
    # When this process is killed, it ends by itself. Ctrl-C is for this process alone.
    words = ("--follow", "--while-pid", str(os.getpid()))
    process = subprocess.Popen(
        ship_command(*words, quiet=True),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
