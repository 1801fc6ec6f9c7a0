"""A result's files replace those of the result before, and no others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from producer.errors import UsageError
from producer.fine_tuning.output import check_output, holds_result, write_output
from producer.fine_tuning.run import fine_tune
from schemas.installation import Installation
from tests.support.reading import installation_at

MODEL, TOKENS, CONFIG = "model.safetensors", "added_tokens.json", "config.json"


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return installation_at(tmp_path / "home")


def made_of(texts: dict[str, str]) -> Callable[[Path], str]:
    def export(making: Path) -> str:
        making.mkdir()
        for name, text in texts.items():
            (making / name).write_text(text)
        return "digest"

    return export


def test_the_files_of_the_result_before_go_and_others_stay(tmp_path: Path) -> None:
    out, run = tmp_path / "out", tmp_path / "out" / "ckpt" / "run"
    run.mkdir(parents=True)
    check_output(out, "a", (run,))
    write_output(out, "a", made_of({MODEL: "old", TOKENS: "{}"}))
    (out / "notes.txt").write_text("mine")
    check_output(out, "a", (run,))
    write_output(out, "a", made_of({MODEL: "new", CONFIG: "{}"}))
    names = sorted(path.name for path in out.iterdir())
    assert names == ["ckpt", CONFIG, MODEL, "notes.txt", "training.json"]
    assert (out / MODEL).read_text() == "new"
    assert run.is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_result_that_a_crash_left_incomplete_is_written_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_output(out, "a", made_of({MODEL: "old", TOKENS: "{}"}))
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
    assert (out / MODEL).read_text() == "new"
    assert not (out / TOKENS).exists()


@pytest.mark.parametrize(
    ("entries", "name", "message"),
    [
        ({"notes.txt": "mine"}, "a", "out is not empty; choose another"),
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
    named = settings | {"training_name": name}
    again = fine_tune("sft", named, installation=installation)
    assert again.status == "completed"
    assert any(states.rglob("*.safetensors"))


@pytest.mark.parametrize("place", ["log_path", "CUA_HOME"])
def test_a_result_is_never_written_among_the_files_of_its_training_or_log(
    installation: Installation, given: dict[str, Any], tmp_path: Path, place: str
) -> None:
    folder = tmp_path / "run" if place == "log_path" else installation.home
    settings = {**given, "output_dir": folder, "log_path": tmp_path / "run"}
    with pytest.raises(UsageError, match=r"output_dir: .* is the training's own folder, or CUA_"):
        fine_tune("sft", settings, installation=installation)
    assert not (tmp_path / "run").exists()
