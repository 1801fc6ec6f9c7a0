"""A training writes to a folder of its own: never over what somebody else has there."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from producer.config import RunConfig
from producer.errors import UsageError
from producer.resume.run_folder import find_run_folder, link_run_folder
from producer.training.run import run
from schemas.installation import Installation, read_installation


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return replace(read_installation({}), home=tmp_path / "home")


def stranger(folder: Path, *names: str) -> dict[Path, bytes]:
    """Somebody's files, as tinker-cookbook names them."""
    folder.mkdir(parents=True)
    for name in names or ("config.json", "metrics.jsonl", "checkpoints.jsonl"):
        (folder / name).write_text(json.dumps({"of": "somebody", "file": name}))
    return contents(folder)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("behavior", ["ask", "resume", "overwrite", "skip", "raise"])
@pytest.mark.parametrize("field", ["log_path", "log_dir"])
def test_a_strangers_folder_is_refused_before_anything_is_written(
    installation: Installation, tmp_path: Path, behavior: str, field: str
) -> None:
    folder = tmp_path / "runs" / "mine"
    before = stranger(folder)
    config = RunConfig.model_validate(
        {
            "training_name": "mine",
            "model_name": "oracle",
            field: folder if field == "log_path" else folder.parent,
            "behavior_if_log_dir_exists": behavior,
        }
    )
    with pytest.raises(
        UsageError, match=r"not empty and not the folder of training 'mine': it has"
    ):
        run(config, installation=installation)
    assert contents(folder) == before
    assert not installation.home.exists()


@pytest.mark.parametrize(
    "names",
    [
        ("config.json",),
        ("checkpoints.jsonl", "train.log"),
        (".git",),
        ("notes.txt", "lock"),
        ("a b\n.txt",),
    ],
)
def test_whatever_lies_there_is_named(
    installation: Installation, tmp_path: Path, names: tuple[str, ...]
) -> None:
    stranger(tmp_path / "folder", *names)
    with pytest.raises(UsageError) as refused:
        find_run_folder(installation, "mine", tmp_path / "folder")
    assert "choose a new folder" in str(refused.value)


@pytest.mark.parametrize("names", [(), ("lost+found",), ("lock", "writers")])
def test_a_new_folder_is_taken(
    installation: Installation, tmp_path: Path, names: tuple[str, ...]
) -> None:
    folder = tmp_path / "folder"
    if names:
        stranger(folder, *names)
    assert find_run_folder(installation, "mine", folder) == folder


def test_a_training_that_was_killed_before_its_first_state_finds_its_folder_again(
    installation: Installation, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    stranger(folder, "metrics.jsonl")
    link_run_folder(installation, "mine", folder)
    assert find_run_folder(installation, "mine", folder) == folder
    with pytest.raises(UsageError, match="not the folder of training 'other'"):
        find_run_folder(installation, "other", folder)


def test_its_own_configuration_names_the_training(
    installation: Installation, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    stranger(folder)
    (folder / "config.json").write_text('{"training_name": "mine"}')
    assert find_run_folder(installation, "mine", folder) == folder
    for other in ('{"training_name": ["mine"]}', "[1]", "{", "null"):
        (folder / "config.json").write_text(other)
        with pytest.raises(UsageError):
            find_run_folder(installation, "mine", folder)
