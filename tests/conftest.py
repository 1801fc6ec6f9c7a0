"""Fixtures that every test may ask for: servers, and an environment in which nothing of the developer's own is met."""

from pathlib import Path

import pytest

from tests.postgres_service import database_url, migrated_template, migrated_url, postgres

__all__ = ["database_url", "migrated_template", "migrated_url", "postgres"]

CONFIGURATION = ("DATABASE_URL", "POSTGRES_", "KAFKA_", "CUA_", "PG")


@pytest.fixture(autouse=True)
def _own_installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each test has its own CUA_HOME, and no configured log or database."""
    import os

    for name in tuple(os.environ):
        if name.startswith(CONFIGURATION):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CUA_HOME", str(tmp_path / "cua-home"))
