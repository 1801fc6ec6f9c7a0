"""A short log, and tables that have nearly all of it."""

import pytest

from tests.reference_fold.histories import LoggedEvent, Shape
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryLog
from tests.support.rebuilding import project
from tests.support.roles import owners_template, owners_url

__all__ = ["owners_template", "owners_url"]


@pytest.fixture(scope="session")
def events() -> list[LoggedEvent]:
    return logged_events("a", shape=Shape(steps=1, groups=1, group_size=2, turns=1))


@pytest.fixture
def log(migrated_url: str, events: list[LoggedEvent]) -> MemoryLog:
    """A log of which the tables have all but the last events."""
    log = memory_log(events[:-20])
    project(log, migrated_url)
    return log
