"""A recipe's command that is given again goes on in the folder that it made."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from producer.cli import cli
from producer.resume.run_folder import training_in
from producer.resume.stamped_folder import with_stamped_folder
from schemas.installation import Installation, read_installation

LATER = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
NEW = "2030-01-02-03-04-05"


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    """The fields of a recipe's file, whose command was killed after its first step of two."""
    fields = {
        "model_name": "oracle",
        "tasks": {"source_type": "demo_training", "limit": 1},
        "group_size": 2,
        "groups_per_batch": 1,
        "skip_baseline": True,
        "eval_every": 0,
        "eval_episodes": 1,
        "num_steps": 1,
        "log_path": str(tmp_path / "outputs" / "{TIMESTAMP}"),
    }
    file = tmp_path / "run.json"
    file.write_text(json.dumps(fields))
    done = CliRunner().invoke(cli, ["run", "--config", str(file), "--no-monitor"])
    assert done.exit_code == 0, done.output
    (made,) = (tmp_path / "outputs").iterdir()
    config = json.loads((made / "config.json").read_text())
    (made / "config.json").write_text(json.dumps({**config, "num_steps": 2}))
    return {**fields, "num_steps": 2}


def test_the_same_command_goes_on_in_its_folder_until_its_last_step(
    given: dict[str, Any], tmp_path: Path, installation: Installation
) -> None:
    (made,) = (tmp_path / "outputs").iterdir()
    (tmp_path / "outputs" / NEW.replace("2030", "2029")).mkdir()
    found = with_stamped_folder(given, installation, LATER)
    assert found == {**given, "log_path": made}
    new = made.parent / NEW
    for other in ({"num_steps": 1}, {"group_size": 4}, {"training_name": "another"}):
        changed = with_stamped_folder({**given, **other}, installation, LATER)
        assert changed["log_path"] == new
    for behavior, folder in (("resume", made), ("overwrite", new), ("raise", new), ("skip", new)):
        asked = {**given, "behavior_if_log_dir_exists": behavior}
        assert with_stamped_folder(asked, installation, LATER)["log_path"] == folder
    config = json.loads((made / "config.json").read_text())
    (made / "config.json").write_text(json.dumps({**config, "num_steps": 1}))
    assert with_stamped_folder(given, installation, LATER)["log_path"] == new
    (made / "config.json").unlink()
    assert with_stamped_folder(given, installation, LATER)["log_path"] == new


def test_a_name_finds_its_folder_wherever_it_is(
    given: dict[str, Any], tmp_path: Path, installation: Installation
) -> None:
    (made,) = (tmp_path / "outputs").iterdir()
    named = {**given, "training_name": training_in(made), "num_steps": 1}
    assert with_stamped_folder(named, installation, LATER)["log_path"] == made
    elsewhere = {**named, "log_path": "outputs of another folder/{TIMESTAMP}"}
    assert with_stamped_folder(elsewhere, read_installation(os.environ), LATER)["log_path"] == made


def test_other_folders_are_as_given(installation: Installation, tmp_path: Path) -> None:
    fields = {"log_path": tmp_path / "run"}
    assert with_stamped_folder(fields, installation, LATER) == fields
    first = {"log_path": str(tmp_path / "a" / "{TIMESTAMP}-x" / "run")}
    assert with_stamped_folder(first, installation, LATER) == {
        "log_path": tmp_path / "a" / f"{NEW}-x" / "run"
    }
