"""What `cua-train` logs, configured once by the command line, and which libraries stay quiet."""

import logging
import os

from schemas import log_lines
from schemas.log_lines import LogFormat

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


def configure_logging(level: int = logging.INFO, log_format: LogFormat = "text") -> None:
    """Log to stderr: ours from `level`, other libraries' warnings; replaces what was configured."""
    log_lines.log_to_stderr(log_format)
    for name in OURS:
        logging.getLogger(name).setLevel(level)
    is_verbose = level <= logging.DEBUG
    for name in OTHERS:
        logging.getLogger(name).setLevel(logging.NOTSET if is_verbose else logging.CRITICAL)
    for variable, value in QUIET_LIBRARIES.items() if not is_verbose else ():
        os.environ.setdefault(variable, value)


def is_for_people() -> bool:
    """Whether progress is shown as text: false with --quiet and with --log-format json."""
    return _level() <= logging.INFO and not log_lines.is_json()


def log_flags() -> list[str]:
    """The flags with which a child process logs as much as this one, in the same format."""
    return log_lines.log_flags(_level())


def _level() -> int:
    return logging.getLogger("producer").getEffectiveLevel()
