"""Tests with a real Chromium run where one is installed; in CI a missing one is a failure."""

from importlib.util import find_spec

import pytest

from producer.agents.miniwob.chromium import chromium_path
from schemas.distribution import install_command
from tests.support.missing import skip_or_fail

needs_chromium = pytest.mark.usefixtures("chromium")


@pytest.fixture(scope="session")
def chromium() -> None:
    """Skips without Playwright, the pages of MiniWoB++ or a browser; fails in CI."""
    if not (find_spec("playwright") and find_spec("miniwob")):
        skip_or_fail(f"Playwright or MiniWoB++ is missing: run {install_command('miniwob')}")
    if chromium_path() is None:
        skip_or_fail("no Chromium is installed: apt-get install chromium")
