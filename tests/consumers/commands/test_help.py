"""`cua-project --help`: quick, whole, and with examples."""

import subprocess
import sys

import pytest
import rich_click as click
from click.testing import CliRunner

from consumers.cli import COMMANDS, cli

HEAVY = (
    *("sqlalchemy", "psycopg2", "alembic", "kafka", "pydantic", "filelock", "rich.progress"),
    *("fsspec", "PIL", "numpy", "torch"),
)


def commands() -> list[tuple[str, ...]]:
    """Every command and subcommand."""
    found: list[tuple[str, ...]] = []
    for name in COMMANDS:
        found.append((name,))
        command = cli.get_command(click.Context(cli), name)
        if isinstance(command, click.Group):
            found += [(name, child) for child in command.commands]
    return found


def test_help_imports_nothing_that_only_running_needs() -> None:
    program = (
        "import sys\nfrom consumers.cli import cli\n"
        f"for words in {[(), *commands()]!r}:\n"
        "    cli.main([*words, '--help'], standalone_mode=False)\n"
        f"    if found := [name for name in {HEAVY!r} if name in sys.modules]:\n"
        "        sys.exit(f'{words}: {found}')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_summaries_of_commands_are_whole() -> None:
    shown = CliRunner().invoke(cli, ["--help"], prog_name="cua-project").stdout
    assert "..." not in shown.replace("[ARGS]...", "")
    assert all(f" {name} " in shown for name in COMMANDS)


def test_every_command_stands_under_a_topic() -> None:
    # Under "Commands" rich-click lists those that no panel names.
    shown = CliRunner().invoke(cli, ["--help"], prog_name="cua-project").stdout
    assert "Commands:" not in [line.strip() for line in shown.splitlines()]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_what_options_take(name: str) -> None:
    shown = CliRunner().invoke(cli, [name, "--help"], prog_name="cua-project").stdout
    for vague in (" TEXT ", " VALUE ", " INTEGER "):
        assert vague not in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples(name: str) -> None:
    shown = CliRunner().invoke(cli, [name, "--help"], prog_name="cua-project").stdout
    assert "Examples:" in shown
    assert f"cua-project {name}" in shown.partition("Examples:")[2]


def test_redrive_is_an_unlisted_spelling_of_retry() -> None:
    listed, *shown = (
        CliRunner().invoke(cli, ["parked", *name, "--help"], prog_name="cua-project").stdout
        for name in ((), ("retry",), ("redrive",))
    )
    assert ("retry" in listed, "redrive" in listed) == (True, False)
    assert shown[1].replace("redrive", "retry").split() == shown[0].split()


def test_help_fits_eighty_columns() -> None:
    shown = CliRunner().invoke(cli, ["tail", "--help"], prog_name="cua-project").stdout
    assert max(map(len, shown.splitlines())) <= 80
