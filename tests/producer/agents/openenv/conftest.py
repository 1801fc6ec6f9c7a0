"""The command line in this process, on the installation that `read_log` reads."""

import pytest

from schemas.installation import Installation
from tests.support.cua_train import cua_train

__all__ = ["cua_train"]


@pytest.fixture(autouse=True)
def _same_installation(monkeypatch: pytest.MonkeyPatch, installation: Installation) -> None:
    monkeypatch.setenv("CUA_HOME", str(installation.home))
