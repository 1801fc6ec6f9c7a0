"""Log lines on stderr: the standard library's logging, configured once by the command line."""

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import TextIO

OURS = ("producer", "schemas")
OTHERS = (
    "PIL",
    "filelock",
    "fsspec",
    "httpx",
    "httpx2",
    "huggingface_hub",
    "kafka",
    "openai",
    "transformers",
)
"""Libraries that log what our own messages report better; shown with --verbose."""
QUIET_LIBRARIES = {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_VERBOSITY": "error"}
"""Both set their logger's level from the environment when they are imported."""


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to the current sys.stderr, which a progress bar replaces while it is shown."""

    def __init__(self, formatter: logging.Formatter) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(formatter)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # read-only here
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


def configure_logging(level: int = logging.INFO, log_format: str = "text") -> None:
    """Log to stderr: ours from `level`, other libraries' warnings; replaces what was configured."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _StderrHandler)]:
        root.removeHandler(handler)
    root.addHandler(_StderrHandler(_JsonLines() if log_format == "json" else _TextLines()))
    for name in OURS:
        logging.getLogger(name).setLevel(level)
    is_verbose = level <= logging.DEBUG
    for name in OTHERS:
        logging.getLogger(name).setLevel(logging.NOTSET if is_verbose else logging.CRITICAL)
    for variable, value in QUIET_LIBRARIES.items() if not is_verbose else ():
        os.environ.setdefault(variable, value)


def is_for_people() -> bool:
    """Whether progress is shown as text: false with --quiet and with --log-format json."""
    return logging.getLogger("producer").isEnabledFor(logging.INFO) and not _is_json()


def log_flags() -> list[str]:
    """The flags with which a child process logs as much as this one, in the same format."""
    ours = logging.getLogger("producer")
    is_quiet, is_verbose = not ours.isEnabledFor(logging.INFO), ours.isEnabledFor(logging.DEBUG)
    return [
        *["--quiet"] * is_quiet,
        *["--verbose"] * is_verbose,
        *["--log-format", "json"] * _is_json(),
    ]


def _is_json() -> bool:
    return any(
        isinstance(handler.formatter, _JsonLines) for handler in logging.getLogger().handlers
    )
