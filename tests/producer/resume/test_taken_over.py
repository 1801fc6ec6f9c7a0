"""A process that was paused and replaced: nothing that it does afterwards counts."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from producer.emit import Emitter
from producer.errors import CuaTrainError, StopRequestedError, TakenOverError
from producer.resume.open_training import open_training
from producer.resume.recorded_training import read_recorded_training
from producer.resume.resume_state import find_states
from producer.resume.training_lock import add_writer, refuse_active_writer
from producer.training.run import run, utc_now
from schemas.installation import Installation
from tests.support.invariants import violations
from tests.support.kafka import KafkaService
from tests.support.paths import ROOT
from tests.support.reading import installation_on
from tests.support.small_run import SMALL, small, watching

ReadLog = Callable[[], list[dict[str, Any]]]
NEVER_S = 3600.0


def begin_and_die(installation: Installation) -> str:
    """A training that its process began and did not end; its source."""
    with Emitter.open(installation) as emitter:
        folder = installation.runs_dir / "small"
        open_training(emitter, "small", small(), folder, clock=utc_now)
        return emitter.source


def refused(
    installation: Installation,
    *,
    later_s: float = 0.0,
    status: str = "running",
    is_log_shared: bool = True,
) -> bool:
    folder = installation.runs_dir / "small"
    with Emitter.open(installation) as emitter:
        stream = read_recorded_training(emitter, "small", folder).stream
    try:
        now = utc_now() + timedelta(seconds=later_s)
        refuse_active_writer("small", stream, status, folder, now, is_log_shared=is_log_shared)
    except CuaTrainError as error:
        message = str(error)
    else:
        return False
    assert "--takeover" in message
    assert stream.position.source in message
    return True


def test_only_a_writer_that_held_the_same_lock_is_known_to_be_dead(
    installation: Installation,
) -> None:
    """The host's name and the pid are this process's own all the time."""
    source = begin_and_die(installation)
    assert not refused(installation)
    writers = installation.runs_dir / "small" / "writers"
    writers.unlink()
    assert refused(installation)
    assert refused(installation, later_s=50)
    assert not refused(installation, later_s=61)
    assert not refused(installation, status="cancelled")
    add_writer(writers.parent, "//somebody/1/else")
    assert refused(installation)
    add_writer(writers.parent, source)
    assert not refused(installation)


def test_a_copied_home_proves_nobody_dead(installation: Installation) -> None:
    """With Kafka the log is one, and the original may live; a local log is copied too."""
    begin_and_die(installation)
    run_folder = installation.runs_dir / "small"
    original = run_folder.rename(run_folder.with_name("original"))
    shutil.copytree(original, run_folder)
    assert refused(installation)
    assert not refused(installation, later_s=61)
    assert not refused(installation, is_log_shared=False)
    shutil.rmtree(run_folder)
    original.rename(run_folder)
    assert not refused(installation)


@pytest.mark.services
def test_a_training_that_lives_in_another_home_of_the_same_host_is_not_taken_without_takeover(
    tmp_path: Path, kafka: KafkaService
) -> None:
    prefix = f"t{uuid4().hex}."
    servers = kafka.bootstrap_servers
    first, second = (installation_on(servers, tmp_path / home, prefix) for home in ("a", "b"))
    source = begin_and_die(first)
    with pytest.raises(CuaTrainError, match="--takeover") as error:
        run(small(num_steps=1), installation=second)
    assert source in str(error.value)
    assert not (second.runs_dir / "small").exists()
    summary = run(small(num_steps=1), installation=second, takeover=True)
    assert (summary.status, summary.steps) == ("completed", 1)
    # It has ended: the first home may go on, without waiting.
    assert run(small(num_steps=2), installation=first).status == "completed"


class Paused:
    """A run of this process that stands still when it has logged a line, until `go_on`."""

    def __init__(self, installation: Installation, line: str) -> None:
        self.error: BaseException | None = None
        self._line = line
        self._has_logged = False
        self._stands, self._goes_on = threading.Event(), threading.Event()
        self._installation = installation
        self._thread = threading.Thread(target=self._run, name="paused")

    def __enter__(self) -> "Paused":
        self._thread.start()
        assert self._stands.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on()

    def go_on(self) -> None:
        self._goes_on.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _watch(self, line: str) -> None:
        if threading.current_thread() is self._thread and line.startswith(self._line):
            self._has_logged = True

    def _clock(self) -> datetime:
        # Not in the log's handler, which other threads would wait for.
        if self._has_logged and threading.current_thread() is self._thread:
            self._stands.set()
            assert self._goes_on.wait(120)
        return utc_now()

    def _run(self) -> None:
        try:
            with watching(self._watch):
                # No heartbeat: it must find out before it saves, not by chance.
                run(
                    small(),
                    installation=self._installation,
                    heartbeat_s=NEVER_S,
                    clock=self._clock,
                )
        except Exception as error:  # noqa: BLE001  # asserted on by the test
            self.error = error


def test_a_replaced_process_saves_nothing_and_the_training_goes_on_from_its_successors_state(
    installation: Installation, read_log: ReadLog
) -> None:
    folder = installation.runs_dir / "small"
    with Paused(installation, "step 1/") as paused:
        with pytest.raises(CuaTrainError, match="takeover"):
            run(small(), installation=installation)
        summary = run(small(), installation=installation, takeover=True)
        assert summary.status == "completed"
        states = {
            state.folder: (state.folder / "manifest.json").read_bytes()
            for state in find_states(folder)
        }
        paused.go_on()
        assert isinstance(paused.error, TakenOverError)
    assert {
        state.folder: (state.folder / "manifest.json").read_bytes() for state in find_states(folder)
    } == states
    summary = run(small(num_steps=4), installation=installation)
    assert (summary.status, summary.steps, summary.generation) == ("completed", 4, 0)
    events = read_log()
    first = next(event for event in events if event["type"] == "cua.training.created")["source"]
    claim = next(event for event in events if event["type"] == "cua.training.resumed")
    late = [event for event in events if event["source"] == first and event["time"] > claim["time"]]
    # What it had in its buffer when it was paused is appended after the claim, too.
    own = [event for event in events if event["subject"] == claim["subject"]]
    late += [item for item in own[own.index(claim) :] if item["source"] == first]
    assert late  # it went on before it noticed
    counting = [event for event in events if event not in late]
    assert violations(counting, num_steps=4, groups=2, group_size=3) == []


def test_two_processes_never_write_a_rollout_of_the_same_name(
    installation: Installation, read_log: ReadLog
) -> None:
    with Paused(installation, "step 1/"):
        run(small(), installation=installation, takeover=True)
    sources: dict[str, set[str]] = {}
    for event in read_log():
        if event["type"] == "cua.rollout.created":
            sources.setdefault(event["data"]["rollout_id"], set()).add(event["source"])
    assert all(len(found) == 1 for found in sources.values())
    assert any(name.endswith("/epoch-2") for name in sources)
    assert any(name.endswith("/attempt-0") for name in sources)


def test_a_state_saved_after_the_takeover_does_not_count(installation: Installation) -> None:
    """The paused process may stand between its last look at the log and its manifest."""
    folder = installation.runs_dir / "small"
    run(small(num_steps=2), installation=installation)
    (newest, *_) = find_states(folder)
    assert newest.manifest.claim_epoch == 1
    first_source = newest.manifest.claim_source
    run(small(num_steps=3), installation=installation)
    (newest, *_) = find_states(folder)
    assert (newest.manifest.step, newest.manifest.claim_epoch) == (3, 2)
    path = newest.folder / "manifest.json"
    for forged in (
        {"claim_epoch": 1, "claim_source": first_source},
        {"claim_epoch": 2, "claim_source": first_source},
        {"claim_epoch": 9, "claim_source": newest.manifest.claim_source},
        {"claim_epoch": 0, "claim_source": ""},
    ):
        path.write_text(json.dumps({**json.loads(path.read_text()), **forged}))
        with Emitter.open(installation) as emitter:
            states = read_recorded_training(emitter, "small", folder).states
        assert [state.manifest.step for state in states] == [2]


def stop_between_commits(pid: int, installation: Installation) -> None:
    """Stop the process while it does not hold the local log's write lock.

    In a commit it would hold the lock for as long as it is stopped, and all writers would wait.
    """
    with closing(
        sqlite3.connect(installation.local_log_path, timeout=0, isolation_level=None)
    ) as log:
        for _ in range(100):
            os.kill(pid, signal.SIGSTOP)
            os.waitpid(pid, os.WUNTRACED)
            with suppress(sqlite3.OperationalError):
                log.execute("BEGIN IMMEDIATE")
                log.execute("ROLLBACK")
                return
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.05)
    pytest.fail("the process was in a commit each time that it was stopped")


@pytest.mark.slow
def test_a_process_that_is_stopped_and_taken_over_ends_when_it_goes_on(
    installation: Installation, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**SMALL, "num_steps": 100_000, "eval_every": 0}))
    command = [sys.executable, "-m", "producer", "run", "--config", str(config), "--no-monitor"]
    environ = {**os.environ, "CUA_HOME": str(installation.home), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert any("step 2/" in line for line in process.stderr)
        stop_between_commits(process.pid, installation)
        refusal = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        assert refusal.returncode == 1
        assert f"process {process.pid}, which is stopped" in refusal.stderr
        stop = threading.Event()

        def watch(line: str) -> None:
            if line.startswith("step 5/"):
                stop.set()

        taking = small(num_steps=100_000, eval_every=0)
        with watching(watch), pytest.raises(StopRequestedError):
            run(taking, installation=installation, takeover=True, stop=stop)
        os.kill(process.pid, signal.SIGCONT)
        rest = process.stderr.read()
        assert process.wait(60) == 1
        assert "taken over" in rest or "is written by" in rest
    finally:
        process.kill()
        process.wait(10)
        if process.stderr is not None:
            process.stderr.close()
