"""A log to be archived."""

from pathlib import Path

import pytest

from tests.reference_fold.histories import LoggedEvent, Shape
from tests.support.logs import logged_events, write_local_log

SMALL = Shape(steps=1, groups=2, group_size=2, turns=2)


@pytest.fixture(scope="module")
def events() -> list[LoggedEvent]:
    return logged_events("a", "b", shape=SMALL)


@pytest.fixture
def log(tmp_path: Path, events: list[LoggedEvent]) -> Path:
    """A local log with everything."""
    path = tmp_path / "log.sqlite3"
    write_local_log(path, events)
    return path
