"""`cua-train` and `cua-project` answer alike: the same mistake, the same words and exit code."""

import json
import os
import re
import subprocess
import sys
from itertools import product
from typing import Any

import pytest

from tests.support.forked_command import Program, run_command

PROGRAMS = ("cua-train", "cua-project")
MODULES: dict[str, Program] = {"cua-train": "producer", "cua-project": "consumers"}
COMMANDS = {"cua-train": ("tasks", "list"), "cua-project": ("tail",)}


def call(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_command(MODULES[program], *arguments)


def streamed(program: str, *arguments: str, **streams: Any) -> "subprocess.CompletedProcess[str]":
    """A process of its own, whose standard output is the test's subject."""
    return subprocess.run(
        [sys.executable, "-m", MODULES[program], *arguments],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
        **streams,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{mistyped}",), "no such command '{mistyped}'. Did you mean '{name}'? See `"),
        (("--verbos",), "no such option '--verbos'. Did you mean '--verbose'"),
        (("-q", "-v", "{name}"), "--verbose and --quiet exclude each other. See `"),
        (("--log-format", "xml", "{name}"), "invalid value for '--log-format': 'xml' is not one"),
    ],
)
def test_a_mistake_is_answered_in_the_same_words(arguments: tuple[str, ...], message: str) -> None:
    for program in PROGRAMS:
        name = COMMANDS[program][0]
        words = {"name": name, "mistyped": name[:1] + name[2:]}
        done = call(program, *(argument.format(**words) for argument in arguments))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"error: {message.format(**words)}")
        assert re.search(r"[.?] See `.*--help`\n$", done.stderr)


def test_an_error_in_an_option_is_logged_in_the_format_given_after_it() -> None:
    mistakes = {
        "cua-train": ("run", "--num-steps", "x", "--log-format", "json"),
        "cua-project": ("tail", "-n", "x", "--log-format", "json"),
    }
    keys = []
    for program in PROGRAMS:
        done = call(program, *mistakes[program])
        line = json.loads(done.stderr)
        assert (done.returncode, line["level"]) == (2, "error")
        assert "'x' is not a valid integer. See `" in line["message"]
        assert len(line["time"]) == len("2026-03-01T12:00:00.000+00:00")
        keys.append(list(line))
    assert keys[0] == keys[1]


@pytest.mark.parametrize(
    ("program", "arguments"),
    list(product(PROGRAMS, [("--help",), None])),
)
def test_a_reader_that_exits_after_the_first_line_is_no_error(
    program: str, arguments: tuple[str, ...] | None
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = streamed(program, *(arguments or (*COMMANDS[program], "-q")), stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_closed_stdout_is_like_the_null_device(program: str) -> None:
    words = [sys.executable, "-m", MODULES[program], *COMMANDS[program], "-q"]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_full_disk_under_stdout_is_named(program: str) -> None:
    prints = {"cua-train": ("tasks", "list"), "cua-project": ("schema",)}
    for words in (("--version",), prints[program]):
        with open("/dev/full", "w") as full:  # noqa: PTH123  # a device, not a path of ours
            done = streamed(program, *words, stdout=full)
        assert done.returncode == 1
        assert "error: the disk is full (standard output); free some space" in done.stderr


def test_help_looks_alike_and_shows_no_ranges() -> None:
    pages = [call(program, "--help").stdout for program in PROGRAMS]
    pages += [call("cua-train", "tasks", "check", "--help").stdout]
    pages += [call("cua-project", "tail", "--help").stdout]
    for page in pages:
        assert page.lstrip().startswith("Usage: ")
        assert "x>=" not in page
        assert "╭" not in page
        for line in ("-v  --verbose", "-q  --quiet", "--log-format <text|json>"):
            assert line in page
    assert all("-V  --version" in page for page in pages[:2])
