"""Pytest plugin: fails a test whose commands print "internal error", whatever it asserts.

A user's mistake must have an error message of its own. The plugin sees errors logged in this
process, the output of other processes that a test reads through `Popen.communicate` or
`subprocess.run`, and captured output. It does not see output that a test reads line by line.
Tests of the message itself have the marker `internal_error`.
"""

import logging
import subprocess
from collections.abc import Generator
from typing import Any

import pytest

INTERNAL_ERROR = "internal error: "
_found: list[str] = []
"""Lines since the last report."""


def lines_with_error(text: str | bytes | None) -> list[str]:
    """The lines of an output that are the message."""
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    return [line for line in (text or "").splitlines() if INTERNAL_ERROR in line]


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and start recording."""
    config.addinivalue_line(
        "markers", "internal_error: a command is expected to print that message"
    )
    make_record = logging.getLogRecordFactory()
    communicate = subprocess.Popen.communicate

    def recording_factory(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make_record(*args, **kwargs)
        if record.levelno >= logging.ERROR:
            _found.extend(lines_with_error(record.getMessage()))
        return record

    def recording_communicate(
        self: "subprocess.Popen[Any]", *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        out, err = communicate(self, *args, **kwargs)
        _found.extend(lines_with_error(out) + lines_with_error(err))
        return out, err

    logging.setLogRecordFactory(recording_factory)
    subprocess.Popen.communicate = recording_communicate  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail the phase (setup, call, teardown) in which the message was printed."""
    report = yield
    here = {f"Captured {stream} {report.when}" for stream in ("stdout", "stderr")}
    captured = [text for name, text in report.sections if name in here]
    found = _found + [line for text in captured for line in lines_with_error(text)]
    _found.clear()
    if found and report.passed and item.get_closest_marker("internal_error") is None:
        report.outcome = "failed"
        report.longrepr = "\n".join(
            ["a command printed an internal error; raise an error that says what to do:", *found]
        )
    return report
