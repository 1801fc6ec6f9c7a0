"""Ctrl-C at any moment of a command's start and end: exit code 130, and no traceback."""

import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable

import pytest

from tests.support.paths import ROOT

AT_IMPORT = """
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {at!r}:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
"""
AT_EXIT = """
import atexit
atexit.register(signal.raise_signal, signal.SIGINT)
"""
RUN = """
import runpy, signal, sys
{interrupt}
sys.argv = ["a-command", *{arguments!r}]
runpy.run_module({package!r}, run_name="__main__", alter_sys=True)
"""
IGNORED: Callable[[], object] = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)  # noqa: E731
# A suite that runs in the background of a shell inherits that it is ignored.
HEEDED: Callable[[], object] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731


def run(
    package: str, interrupt: str, *arguments: str, before: Callable[[], object] = HEEDED
) -> subprocess.CompletedProcess[str]:
    """The package's command, interrupted at one place."""
    program = RUN.format(interrupt=interrupt, package=package, arguments=arguments)
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=before,
    )


@pytest.mark.parametrize("package", ["producer", "consumers"])
@pytest.mark.parametrize("at", ["{}.cli", "rich_click", "click.core", "{}.errors"])
def test_an_interrupted_import_of_the_command_line_says_nothing(package: str, at: str) -> None:
    done = run(package, AT_IMPORT.format(at=at.format(package)), "--version")

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(
    ("package", "at", "arguments"),
    [
        ("producer", "producer.commands.trainings", ("trainings", "list")),
        ("producer", "pydantic_core._pydantic_core", ("trainings", "list")),
        ("consumers", "consumers.commands.tail", ("tail",)),
    ],
)
def test_an_interrupted_import_of_a_command_is_said_in_a_word(
    package: str, at: str, arguments: tuple[str, ...]
) -> None:
    done = run(package, AT_IMPORT.format(at=at), *arguments)

    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "interrupted")


@pytest.mark.parametrize("package", ["producer", "consumers"])
def test_an_interrupt_while_the_interpreter_ends_prints_no_traceback(package: str) -> None:
    done = run(package, AT_EXIT, "--version")

    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize("package", ["producer", "consumers"])
def test_where_the_caller_ignores_interrupts_the_command_goes_on(package: str) -> None:
    interrupt = AT_IMPORT.format(at=f"{package}.cli")

    done = run(package, interrupt, "--version", before=IGNORED)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_the_console_scripts_start_where_interrupts_are_heard() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert project["scripts"] == {
        "cua-train": "producer.__main__:main",
        "cua-project": "consumers.__main__:main",
    }
