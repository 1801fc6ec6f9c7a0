"""The processes that write to the log: what waits in the spool, and operators' decisions.

Writing is the producer's. Its command runs as a process of its own, because neither side imports
the other.
"""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from consumers.errors import CuaProjectError, MismatchError, UnreachableError
from schemas.installation import Installation
from schemas.log_lines import log_flags

if TYPE_CHECKING:
    from consumers.projection.decisions import Decision

MAYBE_THERE = "some decisions may be in the log; run the same command again"
END_S = 10.0
"""The sending process ends within a second of being asked to."""


def is_sent(installation: Installation) -> bool:
    """Whether records of this home are sent anywhere: to Kafka, or their blobs to a store."""
    is_remote = installation.kafka_bootstrap_servers is not None
    return is_remote or installation.blobs_folder is None


def ship_command(*words: str, quiet: bool = False) -> list[str]:
    """The command that sends; `quiet`: with warnings and errors alone."""
    level = logging.WARNING if quiet else logging.getLogger().level
    return [sys.executable, "-P", "-m", "producer", *log_flags(level), "ship", *words]


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


class Appended(NamedTuple):
    """Where a decision is in the log."""

    topic: str
    partition: int
    offset: int


def append_decisions(decisions: Sequence["Decision"], log_id: str | None) -> list[Appended]:
    """Append operators' decisions to the log; returns once they are durable.

    CuaProjectError when the log may not be written; UnreachableError when it is away, and then some
    of them may be in it: one that is there twice counts once. MismatchError when the log is another
    one than `log_id`, of which the tables are, or lacks the topic.
    """
    lines = [
        json.dumps(
            {
                "subject": decision.stream,
                "trainingid": None if decision.training_id is None else str(decision.training_id),
                "type": decision.payload.TYPE,
                "data": decision.payload.model_dump(mode="json"),
            }
        )
        for decision in decisions
    ]
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-m", "producer.log.append_decisions"),
            *([] if log_id is None else [log_id]),
        ],
        input="\n".join(lines),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        message = f"{MAYBE_THERE}: the log's writer ended with exit {done.returncode}"
        raise CuaProjectError(message) from None
    if "error" not in answer:
        return [Appended(*at) for at in answer["appended"]]
    if answer["exit_code"] == UnreachableError.exit_code:
        message = f"{MAYBE_THERE}: {answer['error']}"
        raise UnreachableError(message, is_refusal=True)
    message = f"the decision is not in the log: {answer['error']}"
    if answer["exit_code"] == MismatchError.exit_code:
        raise MismatchError(message)
    raise CuaProjectError(message)
