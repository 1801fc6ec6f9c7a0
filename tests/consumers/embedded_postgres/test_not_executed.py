"""A program that this user may not execute is named, not the folder that would be written."""

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from consumers.commands import ship
from consumers.commands.in_our_place import run_in_our_place
from consumers.embedded_postgres import binaries
from consumers.embedded_postgres.binaries import find_binaries
from consumers.embedded_postgres.postgres import ensure_running
from consumers.errors import UnreachableError, UsageError


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """No mode lets anybody execute it, root included."""
    program = tmp_path / "bin" / "postgres"
    program.parent.mkdir()
    for name in ("postgres", "initdb"):
        (program.parent / name).write_text("#!/bin/sh\n")
        (program.parent / name).chmod(0o644)
    return program


def test_the_interpreter_is_named(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(UsageError) as caught:
        ensure_running(tmp_path / "home" / "database", os.environ)
    assert str(caught.value).startswith(
        f"the embedded database cannot start: {program} cannot be executed: Permission denied;"
    )
    sent = CliRunner().invoke(ship.command)
    assert isinstance(sent.exception, UsageError)
    assert f"{program} cannot be executed: Permission denied" in str(sent.exception)


def test_postgres_is_named_and_not_told_to_be_missing(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "_candidate_folders", lambda _environ: iter([program.parent]))
    with pytest.raises(UnreachableError, match=f"{program} cannot be executed: Permission denied"):
        find_binaries(os.environ)


def test_psql_is_named(program: Path) -> None:
    with pytest.raises(UsageError, match=f"{program} cannot be executed: Permission denied"):
        run_in_our_place([str(program)], os.environ)
