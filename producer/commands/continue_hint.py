"""How the training of a command is continued, said on stderr."""

import logging
from pathlib import Path

from producer.commands.shell import withheld

logger = logging.getLogger(__name__)


class ContinueHint:
    """Says it when the training begins, and again when it is stopped."""

    def __init__(self, *, database: bool = False) -> None:
        """`database`: the printed commands need the tables' place too."""
        self._database = database
        self._command: str | None = None

    def begun(self, name: str, run_folder: Path, command: str) -> None:
        """The training `name` is opened; `command` continues it, as any shell runs it."""
        self._command = command
        logger.info("training: %s", name)
        logger.info("continue it with: %s", command)
        if secrets := withheld(database=self._database):
            logger.info("set %s there first: secrets are not printed", ", ".join(secrets))
        logger.info("state and checkpoints: %s", run_folder)

    def stopped(self) -> int:
        """The exit code of a command that was stopped."""
        logger.info("stopped%s", f"; continue with: {self._command}" if self._command else "")
        return 130
