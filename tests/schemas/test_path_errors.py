"""A path that the operating system cannot take is a mistake of the user, wherever it is used."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from schemas.path_errors import path_problem
from tests.support.forked_command import run_command


def test_a_home_of_nobody_a_loop_and_a_long_name_are_told(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    found = []
    for use in (
        Path("~nosuchuser/x").expanduser,
        partial((tmp_path / "loop").resolve, strict=True),
        (tmp_path / "loop").read_text,
        (tmp_path / ("x" * 300)).read_text,
    ):
        with pytest.raises((OSError, RuntimeError)) as caught:
            use()
        found.append(path_problem(caught.value))
    home, first, second, long = found
    assert home == "cannot expand ~: no such user, or no home directory; write the path in full"
    loop = f"'{tmp_path}/loop' is part of a loop of symbolic links; give another path"
    assert (first, second) == (loop, loop)
    assert str(long).endswith(
        "...' is too long, or has a name that is too long; give a shorter path"
    )


def test_an_interpreter_that_cannot_be_executed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(OSError, match="No such file") as caught:
        subprocess.run([sys.executable], check=False)
    told = path_problem(caught.value)
    assert str(told).startswith(f"{tmp_path}/python cannot be executed: No such file or directory;")


def test_other_errors_are_not() -> None:
    for error in (RuntimeError("x"), FileNotFoundError(2, "no"), ValueError("home")):
        assert path_problem(error) is None


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--model-name", "oracle", "--log-path", "~nosuchuser/x"),
        ("run", "--model-name", "~nosuchuser/x"),
        ("run", "--model-name", "x" * 300),
        ("tasks", "check", "--tasks", '{"source_type": "file", "file_path": "~nosuchuser/x"}'),
        ("sql", "sft", "--model-name", "oracle", "--data-path", "~nosuchuser/x"),
    ],
)
def test_a_command_with_such_a_path_exits_with_2_or_3(words: tuple[str, ...]) -> None:
    done = run_command("producer", *words)
    assert done.returncode in {2, 3}, done
    assert "internal error" not in done.stderr
