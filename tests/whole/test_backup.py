"""The backup and restore of docs/backup.md, as written there, while a training runs."""

import json
import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumers.embedded_postgres.postgres import stop_running
from schemas.installation import read_installation
from tests.support.paths import ROOT

pytestmark = [pytest.mark.services, pytest.mark.slow]

PAGE = (ROOT / "docs" / "backup.md").read_text()
TIMEOUT_S = 180
NUM_STEPS = 1_000
"""Many times those that a training does until it is killed, while a busy machine backs it up."""
RUN = (
    *("cua-train", "run", "--training-name", "kept", "--model-name", "oracle"),
    *("--group-size", "4", "--groups-per-batch", "2", "--eval-episodes", "4", "--eval-every", "20"),
    *("--no-monitor", "--json", "--num-steps"),
)


def blocks() -> tuple[str, str]:
    """The commands that back up, and those that restore."""
    backup, restore = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return backup, restore


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """This checkout's commands on the PATH, and a home with a running training."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, package in (("cua-train", "producer"), ("cua-project", "consumers")):
        script = programs / name
        script.write_text(
            f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m"
            f' {package} "$@"\n'
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    environ = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "CUA_HOME": str(tmp_path / "home"),
        "BACKUP": str(tmp_path / "backup"),
        "OMP_NUM_THREADS": "1",
    }
    yield environ
    for home in ("home", "restored"):
        installation = read_installation({"CUA_HOME": str(tmp_path / home)})
        stop_running(installation.database_dir)


def shell(script: str, environ: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env=environ,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_backup_of_a_running_training_is_restored_verified_and_continued(
    environ: dict[str, str], tmp_path: Path
) -> None:
    backup, restore = blocks()
    shell("cua-project migrate", environ)
    training = subprocess.Popen(
        [*RUN, str(NUM_STEPS)],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert training.stderr is not None
    try:
        for line in training.stderr:
            if line.startswith("step 2/"):
                break
        shell(backup, environ)
        assert training.poll() is None, "the training was over before the backup"
    finally:
        training.kill()
        training.communicate()
    events_then = len(shell("cua-project tail --format '%o\\n'", environ).splitlines())

    restored = {**environ, "CUA_HOME": str(tmp_path / "restored")}
    shell(restore, restored)
    events = shell("cua-project tail --json", restored)
    assert 0 < events.count("\n") <= events_then
    refs = set(re.findall(r"blob:sha256:[0-9a-f]{64}", events))
    assert refs
    for ref in refs:
        digest = ref.rpartition(":")[2]
        path = Path(restored["CUA_HOME"]) / "blobs" / "sha256" / digest[:2] / digest[2:]
        assert path.exists(), f"{ref} is named by an event and was not copied"

    # Three more than the log has, those included that are newer than the newest state.
    num_steps = events.count('"type":"cua.step.finished"') + 3
    assert 3 < num_steps < NUM_STEPS
    done = subprocess.run(
        [*RUN, str(num_steps), "--takeover"],
        env=restored,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["status"], summary["steps"]) == ("completed", num_steps)
    shell("cua-project run --once && cua-project verify", restored)
