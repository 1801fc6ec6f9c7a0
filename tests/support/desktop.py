"""Tests with a real desktop run where its programs are installed; in CI it is a failure if not."""

import pytest

from producer.agents.desktop.programs import check_programs
from producer.errors import UsageError
from tests.support.missing import skip_or_fail

needs_desktop = pytest.mark.usefixtures("desktop_programs")


@pytest.fixture(scope="session")
def desktop_programs() -> None:
    """Skips without Xvfb or one of the applications, naming the line of apt; fails in CI."""
    try:
        check_programs()
    except UsageError as error:
        skip_or_fail(str(error))
