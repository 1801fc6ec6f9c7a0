"""Log lines on stderr: where they go, how they look, and which libraries stay quiet.

Only the command line configures logging; modules use `logging.getLogger(__name__)`.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal, TextIO

LogFormat = Literal["text", "json"]

LIBRARIES = ("alembic", "asyncio", "filelock", "fsspec", "sqlalchemy", "urllib3")
"""Loggers that report at WARNING and above."""
SILENT_LIBRARIES = ("kafka", "sqlalchemy.pool")
"""kafka-python logs an ERROR, some with a traceback, for every failed connection attempt, and
SQLAlchemy a traceback for a connection that the server ended before it was given back. Our own
errors and warnings name the outage once."""


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to whatever `sys.stderr` is when a record is emitted (tests replace it)."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # the base class assigns it once
        return sys.stderr


class _TextFormatter(logging.Formatter):
    """INFO is the plain message; anything else is prefixed with its level."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if record.levelno == logging.INFO else f"{record.levelname.lower()}: {text}"


class _JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def configure_logging(
    *, verbose: bool = False, quiet: bool = False, log_format: LogFormat = "text"
) -> None:
    """Send log records to stderr. Idempotent; the last call wins.

    INFO and above by default, DEBUG with `verbose`, WARNING with `quiet`.
    """
    handler = _StderrHandler()
    handler.setFormatter(
        _JsonFormatter() if log_format == "json" else _TextFormatter("%(message)s")
    )
    root = logging.getLogger()
    for previous in [handler for handler in root.handlers if isinstance(handler, _StderrHandler)]:
        root.removeHandler(previous)
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO)
    for name in LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in SILENT_LIBRARIES:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def log_flags(*, quiet: bool = False) -> list[str]:
    """The flags with which another of our commands logs as much as this one, in its format.

    `quiet`: its warnings and errors only.
    """
    root = logging.getLogger()
    quiet = quiet or root.level > logging.INFO
    is_json = any(isinstance(handler.formatter, _JsonFormatter) for handler in root.handlers)
    return [
        *["--quiet"] * quiet,
        *["--verbose"] * (not quiet and root.level <= logging.DEBUG),
        *["--log-format", "json"] * is_json,
    ]
