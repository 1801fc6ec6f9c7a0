"""Small events of environments, and a process that emits them."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import uuid4

from schemas.environment import EnvironmentCreationStarted, EnvironmentRequested
from tests.support.paths import ROOT

REQUESTED = EnvironmentRequested(env_type="a", box_type="b", config={})
CREATING = EnvironmentCreationStarted()


def new_subject() -> str:
    """Of an environment."""
    return f"environment/{uuid4()}"


def emitting_process(
    home: Path, num_streams: int, *, prefix: str = "cua.", servers: str = "", **options: Any
) -> "subprocess.Popen[str]":
    """`tests.support.emitting_process` in a home; `servers`: of Kafka."""
    kafka = {"KAFKA_BOOTSTRAP_SERVERS": servers} if servers else {}
    own = {"CUA_HOME": str(home), "CUA_TOPIC_PREFIX": prefix, "PYTHONPATH": str(ROOT), **kafka}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.emitting_process", str(num_streams)],
        cwd=ROOT,
        env={**os.environ, **own},
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def acknowledged(lines: Iterable[str]) -> dict[str, int]:
    """Subject -> its last sequence number that the process printed; a line cut short counts not."""
    whole = (line.split() for line in lines if line.endswith("\n") and line.count(" ") == 2)
    return {subject: int(number) for subject, number, _ref in whole}
