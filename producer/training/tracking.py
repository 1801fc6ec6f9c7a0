"""Runs `cua-project track` as a child process that mirrors a run to Weights & Biases.

It reads the log. Training waits for it only at the end, and never fails because of it.
"""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Protocol

from producer.errors import UsageError
from producer.log_lines import log_flags
from schemas.distribution import install_command
from schemas.installation import Installation

logger = logging.getLogger(__name__)

FINISH_TIMEOUT_S = 60.0
"""Time for the last measurements; the rest stays on disk for `cua-project track`."""


class Tracked(Protocol):
    """The settings of a training's mirror."""

    @property
    def wandb_project(self) -> str | None:
        """None if the training is not mirrored."""

    @property
    def wandb_name(self) -> str | None:
        """Name of the mirrored run; None: the training's name."""


def require_tracker(config: Tracked) -> None:
    """Raises UsageError if the configuration names a tracker whose package is missing."""
    if config.wandb_project is not None and find_spec("wandb") is None:
        command = install_command("wandb")
        message = f"wandb_project: wandb is not installed; run {command}, or omit it"
        raise UsageError(message)


@contextmanager
def mirrored(config: Tracked, name: str, installation: Installation) -> Iterator[None]:
    """Mirror the training inside the block, if configured."""
    if config.wandb_project is None:
        yield
        return
    options = ["--project", config.wandb_project]
    if config.wandb_name is not None:
        options += ["--name", config.wandb_name]
    with _sigterm_held():
        process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "consumers", *log_flags()),
                *("track", "wandb", "--training", name, "--follow", *options),
                *("--while-pid", str(os.getpid())),
            ],
            env=os.environ | {"CUA_HOME": str(installation.home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            # Its own session: Ctrl-C reaches only the trainer, which stops this process last.
            start_new_session=True,
        )
    logger.info("measurements go to the wandb project %s", config.wandb_project)
    try:
        yield
    finally:
        _stop(process, config.wandb_project)


@contextmanager
def _sigterm_held() -> Iterator[None]:
    """Hold SIGTERM for a process started inside until it has installed a handler.

    A training may end before its mirror has been imported.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stop(process: "subprocess.Popen[bytes]", project: str) -> None:
    """Let it read to the end of the log, then end it."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(FINISH_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.returncode:
        logger.warning(
            "the wandb project %s lacks measurements; `cua-project track wandb` sends them", project
        )
