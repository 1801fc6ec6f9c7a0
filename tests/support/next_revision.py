"""The next version of this code, made in a folder: one column more, and the revision that adds it.

A revision of later versions looks like this one: it only adds, so that the tables stay live; its
rows are readable before the rebuild that the higher projection version asks for; its downgrade
marks rows that older code must not believe.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from consumers.tables import PROJECTION_VERSION
from tests.support.paths import ROOT

REVISION = "0012"
"""The next that is free: `consumers.database.revision` refuses those between it and 0001."""
_MIGRATION = f'''"""How long a training's name is.

Revision: {REVISION}, after 0001.
"""

from alembic import op

revision = "{REVISION}"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; the rebuild that the new projection version asks for fills it."""
    op.execute("ALTER TABLE cua.training ADD name_length INTEGER")


def downgrade() -> None:
    """Drop the column; older code asks for a rebuild of rows that it has not made."""
    op.execute("UPDATE cua.projection SET version = 0")
    op.execute("ALTER TABLE cua.training DROP name_length")
'''
_EDITS = {
    "consumers/tables/base.py": (
        f"\nPROJECTION_VERSION = {PROJECTION_VERSION}\n",
        f"\nPROJECTION_VERSION = {PROJECTION_VERSION + 1}\n",
    ),
    "consumers/tables/training.py": (
        '    """The command line\'s --training-name."""\n',
        '    """The command line\'s --training-name."""\n'
        "    name_length: Mapped[OptNumber]\n"
        '    """Characters of run_name."""\n',
    ),
    "consumers/fold/projectors/training.py": (
        '        "run_name": payload.run_name,\n',
        '        "run_name": payload.run_name,\n        "name_length": len(payload.run_name),\n',
    ),
}


class NextVersion(NamedTuple):
    """The next version's code."""

    folder: Path

    def run(self, *words: str, url: str) -> "subprocess.CompletedProcess[str]":
        """Its `cua-project` on a database."""
        environ = os.environ | {"PYTHONPATH": str(self.folder), "DATABASE_URL": url}
        return subprocess.run(
            [sys.executable, "-m", "consumers", *words],
            cwd=self.folder,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


def make_next_version(folder: Path) -> NextVersion:
    """Copy this code and change it."""
    for name in ("alembic", "consumers", "schemas"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (before, after) in _EDITS.items():
        path = folder / name
        text = path.read_text("utf-8")
        assert text.count(before) == 1, name
        path.write_text(text.replace(before, after), "utf-8")
    (folder / "alembic" / "versions" / f"{REVISION}_name_length.py").write_text(_MIGRATION)
    return NextVersion(folder)
