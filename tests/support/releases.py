"""What earlier releases wrote, as fixtures that hand out copies.

Opening a SQLite log, even to read, makes, changes and deletes the files beside it: no test may open
the stored one. `test_stored_releases.py` finds whoever names it.
"""

import shutil
from pathlib import Path

import pytest

from tests.support.paths import ROOT

_RELEASE_1 = ROOT / "tests" / "data" / "release_1"
RELEASE_1_ROLLOUT = _RELEASE_1 / "rollout.jsonl"
"""The records of one rollout of a policy with tokens."""


@pytest.fixture
def release_1_home(tmp_path: Path) -> Path:
    """A CUA_HOME that release 1 wrote, copied."""
    return shutil.copytree(_RELEASE_1 / "home", tmp_path / "release-1-home")
