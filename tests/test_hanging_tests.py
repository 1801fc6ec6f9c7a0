"""A test that hangs fails by its name; a suite that is stopped names the tests under way."""

import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.paths import ROOT

WAIT_S = 120.0
HANGING = """
import threading

def wait_for_ever():
    threading.Event().wait()

def test_before_it():
    pass

def test_that_hangs():
    threading.Thread(target=wait_for_ever, name="other-thread", daemon=True).start()
    threading.Event().wait()

def test_after_it():
    pass
"""


def pytest_command(folder: Path, *options: str) -> list[str]:
    """Of a suite in `folder` with this project's settings, in a worker."""
    (folder / "test_hanging.py").write_text(HANGING)
    settings = ["-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider"]
    # Without it, pytest deletes at its end what earlier runs have left in its folder: minutes.
    settings += ["--basetemp", str(folder / "temporary")]
    plugins = ["-p", "tests.support.running_tests", "--numprocesses", "1"]
    return [sys.executable, "-m", "pytest", *settings, *plugins, *options, str(folder)]


def test_a_test_over_its_limit_fails_by_its_name_with_every_stack_and_the_next_one_runs(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        pytest_command(tmp_path, "-o", "timeout=5"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 1
    failed = r"FAILED \S*test_hanging.py::test_that_hangs - Failed: Timeout \(>5.0s\)"
    assert re.search(failed, done.stdout), done.stdout
    assert "Stack of other-thread" in done.stdout
    assert "in wait_for_ever" in done.stdout
    assert "1 failed, 2 passed" in done.stdout


STOPPING = """
import os, signal, threading, time
from pathlib import Path

def test_before_it():
    pass

def test_that_hangs():
    followed = Path(__file__).with_name("followed")
    while not followed.exists() or followed.read_text().count("test_that_hangs") < 2:
        time.sleep(0.01)
    os.kill(os.getppid(), signal.SIGTERM)
    threading.Event().wait()
"""
FOLLOWING = """
import pytest
from pathlib import Path

@pytest.hookimpl(trylast=True)
def pytest_runtest_logstart(nodeid):
    with Path(__file__).with_name("followed").open("a") as file:
        file.write(nodeid)
"""
"""A conftest.py that records when a test began: first in the worker, then in the process that
started it, after the plugin there has seen it."""


def test_a_suite_that_is_stopped_names_the_tests_that_were_running(tmp_path: Path) -> None:
    command = pytest_command(tmp_path)
    (tmp_path / "test_hanging.py").write_text(STOPPING)
    (tmp_path / "conftest.py").write_text(FOLLOWING)
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert done.returncode == -signal.SIGTERM
    named = re.search(r"running:\n((?:    .*\n)*)", done.stderr)
    assert named is not None, done.stderr
    assert re.fullmatch(r"    \S*test_hanging.py::test_that_hangs\n", named[1])
