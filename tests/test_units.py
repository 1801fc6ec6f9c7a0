"""The systemd units in docs are valid, and start commands that exist with their options."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from consumers.cli import cli as project_cli
from producer.cli import cli as train_cli
from tests.support.paths import ROOT

UNITS = sorted((ROOT / "docs" / "systemd").glob("*.service"))
BIN = "/opt/cua-train/.venv/bin/"
PROGRAMS: dict[str, click.Group] = {"cua-project": project_cli, "cua-train": train_cli}


def calls(unit: Path) -> list[tuple[str, list[str]]]:
    """Program and words of every command of ours; %i is a name."""
    text = unit.read_text().replace("%i", "name")
    found = re.findall(rf"^Exec\w+=-?{BIN}(\S+) (.*)$", text, re.MULTILINE)
    return [(program, shlex.split(words)) for program, words in found]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_a_command_with_options_that_exist(unit: Path) -> None:
    assert calls(unit)
    for program, words in calls(unit):
        cli = PROGRAMS[program]
        names = cli.list_commands(click.Context(cli))
        at = next(index for index, word in enumerate(words) if word in names)
        command = cli.get_command(click.Context(cli), words[at])
        for name in words[at + 1 :]:
            if isinstance(command, click.Group):
                command = command.commands[name]
        assert command is not None
        is_nested = command.name != words[at]
        command.make_context(
            str(command.name), words[at + 1 + is_nested :], parent=click.Context(cli)
        )


def test_a_timer_starts_a_unit_that_exists() -> None:
    timers = sorted(UNITS[0].parent.glob("*.timer"))
    assert timers
    assert {timer.with_suffix(".service") for timer in timers} <= {*UNITS}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_finds_nothing_wrong(unit: Path, tmp_path: Path) -> None:
    # Programs and users that are not on this machine would be its only complaint.
    text = re.sub(rf"{BIN}\S+", "/bin/true", unit.read_text())
    copy = tmp_path / unit.name
    copy.write_text(re.sub(r"^User=.*$", "User=root", text, flags=re.MULTILINE))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
