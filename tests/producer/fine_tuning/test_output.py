"""A result's files replace those of the result before, and no others."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from producer.errors import UsageError
from producer.fine_tuning.output import check_output, holds_result, write_output
from producer.fine_tuning.run import fine_tune
from schemas.installation import Installation
from tests.support.reading import installation_at

MODEL, CONFIG, PRIME = "model.safetensors", "config.json", "prime/optimizer.pt"


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return installation_at(tmp_path / "home")


def made_of(texts: dict[str, str]) -> Callable[[Path], str]:
    def export(making: Path) -> str:
        for name, text in texts.items():
            (making / name).parent.mkdir(parents=True, exist_ok=True)
            (making / name).write_text(text)
        return "digest"

    return export


def files_of(folder: Path) -> dict[str, str]:
    every = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in every}


def test_a_result_replaces_the_one_before_subfolders_included_and_other_files_stay(
    tmp_path: Path,
) -> None:
    out, run = tmp_path / "out", tmp_path / "out" / "prime" / "run"
    run.mkdir(parents=True)
    (run / "state").write_text("step 1")
    check_output(out, "a", (run,))
    write_output(out, "a", made_of({MODEL: "old", PRIME: "old"}))
    (out / "notes.txt").write_text("mine")
    check_output(out, "a", (run,))
    write_output(out, "a", made_of({MODEL: "new", PRIME: "new", CONFIG: "{}"}))
    found = files_of(out)
    assert json.loads(found.pop("training.json")) == {
        "training_name": "a",
        "weights_sha256": "digest",
    }
    kept = {"prime/run/state": "step 1", "notes.txt": "mine"}
    assert found == {MODEL: "new", PRIME: "new", CONFIG: "{}", **kept}


def test_a_result_that_a_crash_left_incomplete_is_written_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_output(out, "a", made_of({MODEL: "old"}))
    assert (holds_result(out, "a"), holds_result(out, "b")) == (True, False)
    (out / CONFIG).mkdir()
    new = made_of({MODEL: "new", CONFIG: "{}"})
    with pytest.raises(OSError, match="directory"):
        write_output(out, "a", new)
    assert not holds_result(out, "a")
    check_output(out, "a", ())
    (out / CONFIG).rmdir()
    write_output(out, "a", new)
    assert holds_result(out, "a")
    assert files_of(out).keys() == {MODEL, CONFIG, "training.json"}


def test_what_a_crash_before_the_first_mark_leaves_is_no_strangers(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def crash(making: Path) -> str:
        making.mkdir()
        (making / MODEL).write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_output(out, "a", crash)
    (out / "training.json.tmp").write_text("{")
    check_output(out, "a", ())
    write_output(out, "a", made_of({MODEL: "whole"}))
    assert files_of(out).keys() == {MODEL, "training.json"}


@pytest.mark.parametrize(
    ("entries", "name", "message"),
    [
        ({"notes.txt": "mine"}, "a", "out is not empty; choose another"),
        ({"training.json": "[" * 100_000}, "a", "out is not empty; choose another"),
        ({"training.json": "[]"}, "a", "out is not empty; choose another"),
        ({"training.json": '{"training_name": "b"}'}, "a", "out holds the result of training 'b'"),
    ],
)
def test_a_folder_of_somebody_else_is_refused(
    tmp_path: Path, entries: dict[str, str], name: str, message: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for entry, text in entries.items():
        (out / entry).write_text(text)
    with pytest.raises(UsageError, match=message):
        check_output(out, name, (out / "run",))


def test_a_result_goes_beside_its_own_training_and_never_replaces_it(
    installation: Installation, given: dict[str, Any], tmp_path: Path
) -> None:
    """As in RewardSQL's rm_config.json, where ckpt_path is in save_path."""
    settings = {**given, "output_dir": tmp_path / "out", "log_path": tmp_path / "out/ckpt/run"}
    name = fine_tune("sft", settings, installation=installation).training_name
    states = tmp_path / "out/ckpt/run/state"
    assert any(states.rglob("*.safetensors"))
    out, named = tmp_path / "out", settings | {"training_name": name}
    assert holds_result(out, name)
    (out / "training.json").unlink()
    (out / "training.json.tmp").touch()
    for path in out.iterdir():  # what a crash before the first mark leaves
        if path.name not in {"ckpt", "training.json.tmp"}:
            path.unlink()
    again = fine_tune("sft", named, installation=installation)
    assert again.status == "completed"
    assert holds_result(out, name)
    assert any(states.rglob("*.safetensors"))


@pytest.mark.parametrize("place", ["log_path", "CUA_HOME"])
def test_a_result_is_never_written_among_the_files_of_its_training_or_log(
    installation: Installation, given: dict[str, Any], tmp_path: Path, place: str
) -> None:
    folder = tmp_path / "run" if place == "log_path" else installation.home
    settings = {**given, "output_dir": folder, "log_path": tmp_path / "run"}
    with pytest.raises(UsageError, match=r"output_dir: .* is the training's own folder or CUA_"):
        fine_tune("sft", settings, installation=installation)
    assert not (tmp_path / "run").exists()
