"""Log lines on stderr, the same from both commands: text for people, or JSON for programs."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal, TextIO

LogFormat = Literal["text", "json"]


class StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to the current sys.stderr, which a progress bar replaces while it is shown."""

    def __init__(self, log_format: LogFormat) -> None:
        logging.Handler.__init__(self)
        self.is_json = log_format == "json"
        self.setFormatter(_JsonLines() if self.is_json else _TextLines())

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # the base class assigns it once
        """Standard error as it is now."""
        return sys.stderr


class _TextLines(logging.Formatter):
    """The message alone for INFO, `warning: ...` and the like for every other level."""

    def format(self, record: logging.LogRecord) -> str:
        prefix = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        return prefix + super().format(record)


class _JsonLines(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "time": time,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def log_to_stderr(log_format: LogFormat) -> None:
    """Send every logger's records to stderr. Idempotent; the last call's format holds."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, StderrHandler)]:
        root.removeHandler(handler)
    root.addHandler(StderrHandler(log_format))


def is_json() -> bool:
    """Whether log lines are JSON objects."""
    handlers = logging.getLogger().handlers
    return any(isinstance(handler, StderrHandler) and handler.is_json for handler in handlers)


def log_flags(level: int) -> list[str]:
    """The flags with which another of our commands logs from this level, in the same format."""
    return [
        *["--quiet"] * (level > logging.INFO),
        *["--verbose"] * (level <= logging.DEBUG),
        *["--log-format", "json"] * is_json(),
    ]
