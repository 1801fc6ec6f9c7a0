"""Locks and markers that this process may not use: its own is refused by name, others' stop nobody.

A folder in a file's place stands for a file of another user, which root may use all the same.
"""

from pathlib import Path
from uuid import UUID

import pytest

from producer.errors import UsageError
from producer.resume.orphans import markers_of_dead_processes
from producer.resume.training_lock import training_lock

SUBJECT = f"evaluation/{UUID(int=1)}"
WHOLE = f'{{"subject": "{SUBJECT}", "log_id": "log", "since": {{}}}}'


def test_a_trainings_lock_that_cannot_be_used_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(UsageError, match=f"{tmp_path}/lock.*chown"), training_lock(tmp_path, "x"):
        pass


@pytest.mark.parametrize("suffix", [".lock", ".open"])
def test_a_marker_that_cannot_be_used_keeps_no_training_from_starting(
    tmp_path: Path, suffix: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "0.open").write_text(WHOLE)
    (tmp_path / "1.open").write_text(WHOLE)
    (tmp_path / f"0{suffix}").unlink(missing_ok=True)
    (tmp_path / f"0{suffix}").mkdir()

    found = list(markers_of_dead_processes(tmp_path, "log"))

    assert [marker.path.name for marker in found] == ["1.open"]
    assert "0.open" in caplog.text
