"""An installed wheel is the checkout: the code, its data files and the migrations."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from schemas.catalogue import BY_TYPE
from tests.support.paths import ROOT


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a wheel of this checkout was unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    assert f"pip install './{wheel.name}[project]'" in (ROOT / "README.md").read_text()
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def call(installed: Path, cwd: Path, *arguments: str, **variables: str) -> str:
    """Output of a module of the unpacked wheel, run where no checkout is.

    The program says whose code it ran.
    """
    program = (
        "import runpy, sys, consumers, producer; print(consumers.__file__, producer.__file__,"
        " file=sys.stderr);sys.argv = sys.argv[1:]; runpy.run_module(sys.argv[0],"
        " run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(installed), **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (
        done.stderr.splitlines()[0]
        == f"{installed}/consumers/__init__.py {installed}/producer/__init__.py"
    )
    return done.stdout


@pytest.mark.services
def test_a_wheel_brings_a_database_to_the_tables_of_its_code(
    installed: Path, tmp_path: Path, database_url: str
) -> None:
    assert "before: none" in call(
        installed, tmp_path, "consumers", "migrate", DATABASE_URL=database_url
    )
    call(installed, tmp_path, "consumers", "migrate", "--check", DATABASE_URL=database_url)


def test_a_wheel_holds_the_schema_of_every_event(installed: Path, tmp_path: Path) -> None:
    listed = json.loads(call(installed, tmp_path, "consumers", "schema", "--json"))
    assert {(item["type"], item["version"]) for item in listed if item["is_current"]} == set(
        BY_TYPE
    )
    old = json.loads(
        call(installed, tmp_path, "consumers", "schema", "rollout.turn_taken", "--version", "1")
    )
    assert old["$id"] == "urn:cua:cua.rollout.turn_taken:1"


def test_a_wheel_holds_the_demo_tasks(installed: Path, tmp_path: Path) -> None:
    assert len(json.loads(call(installed, tmp_path, "producer", "tasks", "list", "--json"))) == 100
