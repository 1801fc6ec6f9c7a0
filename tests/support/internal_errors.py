"""Pytest plugin: a test fails if one of its commands printed "internal error", expected or not.

What a user can cause has a sentence of its own. Seen is what a command logs in this process, what
tests read of other processes by `communicate` (so by `subprocess.run` too), and what pytest
captured. A test of the message itself has the marker `internal_error`.
"""

import logging
import subprocess
from collections.abc import Generator
from typing import Any

import pytest

SAID = "internal error: "
_found: list[str] = []
"""Lines since the last report."""


def lines_with_error(text: str | bytes | None) -> list[str]:
    """The lines of an output that are the message."""
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    return [line for line in (text or "").splitlines() if SAID in line]


def pytest_configure(config: pytest.Config) -> None:
    """Listen."""
    config.addinivalue_line("markers", "internal_error: a command is meant to print that message")
    make_record = logging.getLogRecordFactory()
    communicate = subprocess.Popen.communicate

    def noting_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make_record(*args, **kwargs)
        if record.levelno >= logging.ERROR:
            _found.extend(lines_with_error(record.getMessage()))
        return record

    def noting(self: "subprocess.Popen[Any]", *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        out, err = communicate(self, *args, **kwargs)
        _found.extend(lines_with_error(out) + lines_with_error(err))
        return out, err

    logging.setLogRecordFactory(noting_record)
    subprocess.Popen.communicate = noting  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail the phase in which it was said."""
    report = yield
    here = {f"Captured {stream} {report.when}" for stream in ("stdout", "stderr")}
    captured = [text for name, text in report.sections if name in here]
    found = _found + [line for text in captured for line in lines_with_error(text)]
    _found.clear()
    if found and report.passed and item.get_closest_marker("internal_error") is None:
        report.outcome = "failed"
        report.longrepr = "\n".join(
            ["a command ended with an internal error; give its cause a sentence:", *found]
        )
    return report
