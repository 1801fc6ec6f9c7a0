"""Every test fails whose commands print "internal error": the plugin on a suite of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

SUITE = """
import logging, subprocess, sys
import pytest

PROGRAM = "import sys; sys.stderr.write('error: internal error: KeyError: 1; please report it')"

def test_of_a_command():
    subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True)

def test_of_a_command_that_is_bytes_and_waited_for():
    subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=subprocess.PIPE).communicate()

def test_of_a_command_whose_output_nobody_reads():
    subprocess.run([sys.executable, "-c", PROGRAM])

def test_of_a_command_in_this_process():
    logging.getLogger("producer").error("%s", "internal error: KeyError: 1")

@pytest.fixture
def ends_badly():
    yield
    logging.getLogger("producer").error("internal error: KeyError: 1")

def test_of_the_fixtures_end(ends_badly):
    pass

@pytest.mark.internal_error
def test_of_the_message():
    subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True)

def test_after_it():
    logging.getLogger("producer").error("an error of the user")
"""


@pytest.mark.internal_error
def test_whatever_the_tests_assert(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    settings = ["-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider", "-p", "no:xdist"]
    plugins = ["-p", "tests.support.internal_errors"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *settings, *plugins, "-v", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    outcomes = re.findall(r"::(test_\w+) (PASSED|FAILED|ERROR)", done.stdout)
    assert outcomes == [
        ("test_of_a_command", "FAILED"),
        ("test_of_a_command_that_is_bytes_and_waited_for", "FAILED"),
        ("test_of_a_command_whose_output_nobody_reads", "FAILED"),
        ("test_of_a_command_in_this_process", "FAILED"),
        ("test_of_the_fixtures_end", "PASSED"),
        ("test_of_the_fixtures_end", "ERROR"),
        ("test_of_the_message", "PASSED"),
        ("test_after_it", "PASSED"),
    ], done.stdout
    assert "internal error: KeyError: 1; please report it" in done.stdout
