"""The systemd units in docs are valid, and start commands that exist with their options."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from consumers.cli import COMMANDS, cli
from tests.support.paths import ROOT

UNITS = sorted((ROOT / "docs" / "systemd").glob("*.service"))
PROGRAM = "/opt/cua-train/.venv/bin/cua-project"


def calls(unit: Path) -> list[list[str]]:
    """The words of every command of ours."""
    found = re.findall(rf"^Exec\w+=-?{re.escape(PROGRAM)} (.*)$", unit.read_text(), re.MULTILINE)
    return [shlex.split(words) for words in found]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_a_command_with_options_that_exist(unit: Path) -> None:
    assert calls(unit)
    for words in calls(unit):
        at = next(index for index, word in enumerate(words) if word in COMMANDS)
        context = click.Context(cli)
        command: click.Command | None = cli.get_command(context, words[at])
        for name in words[at + 1 :]:
            if isinstance(command, click.Group):
                command = command.commands[name]
        assert command is not None
        is_nested = command.name != words[at]
        command.make_context(
            str(command.name), words[at + 1 + is_nested :], parent=click.Context(cli)
        )


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_finds_nothing_wrong(unit: Path, tmp_path: Path) -> None:
    # Programs and users that are not on this machine would be its only complaint.
    text = unit.read_text().replace(PROGRAM, "/bin/true")
    copy = tmp_path / unit.name
    copy.write_text(re.sub(r"^User=.*$", "User=root", text, flags=re.MULTILINE))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
