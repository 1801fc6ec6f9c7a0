"""Pytest plugin of `make test-ci`: it refuses to run more than three failed tests again."""

import pytest

MAX_FAILED = 3


def pytest_collection_finish(session: pytest.Session) -> None:
    """Raise pytest.UsageError for more than MAX_FAILED tests."""
    if len(session.items) > MAX_FAILED:
        message = f"{len(session.items)} tests failed: only up to {MAX_FAILED} are run again"
        raise pytest.UsageError(message)
