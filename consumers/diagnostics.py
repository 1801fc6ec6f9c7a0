"""What `cua-project` logs, and which libraries stay quiet.

Only the command line configures logging; modules use `logging.getLogger(__name__)`.
"""

import logging

from schemas.log_lines import LogFormat, log_to_stderr

LIBRARIES = ("alembic", "asyncio", "filelock", "fsspec", "sqlalchemy", "urllib3")
"""Loggers that report at WARNING and above."""
SILENT_LIBRARIES = ("kafka", "sqlalchemy.pool")
"""kafka-python logs an ERROR, some with a traceback, for every failed connection attempt, and
SQLAlchemy a traceback for a connection that the server ended before it was given back. Our own
errors and warnings name the outage once."""


def configure_logging(
    *, verbose: bool = False, quiet: bool = False, log_format: LogFormat = "text"
) -> None:
    """Send log records to stderr. Idempotent; the last call wins.

    INFO and above by default, DEBUG with `verbose`, WARNING with `quiet`.
    """
    log_to_stderr(log_format)
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    logging.getLogger().setLevel(level)
    for name in LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in SILENT_LIBRARIES:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
