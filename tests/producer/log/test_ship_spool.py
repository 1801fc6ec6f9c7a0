"""What a process that has ended left in its spool is sent by `cua-project ship` and `up`."""

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psutil
import pytest

from consumers.log.open import open_reader
from consumers.log.waiting import read_waiting
from producer.emit import Emitter
from schemas.ids import training_id
from schemas.installation import Installation, read_installation
from schemas.training import TrainingCreated, TrainingInitializing, TrainingStarted
from tests.producer.emit.test_stream import RECIPE
from tests.support.command import Call, call
from tests.support.emitting import REQUESTED, new_subject
from tests.support.eventually import eventually
from tests.support.forked_command import run_command
from tests.support.kafka import KafkaService
from tests.support.ports import free_port

__all__ = ["call"]

pytestmark = pytest.mark.services

DEADLINE_S = 60
NUM_EVENTS = 3


@pytest.fixture
def prefix(monkeypatch: pytest.MonkeyPatch) -> str:
    """Of the test's topics. Kafka is away at first."""
    prefix = f"left{uuid4().hex}."
    monkeypatch.setenv("CUA_TOPIC_PREFIX", prefix)
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", f"127.0.0.1:{free_port()}")
    return prefix


def installation() -> Installation:
    return read_installation(os.environ)


def leave_events() -> None:
    """Emit while Kafka is away, and end."""
    emitter = Emitter.open(installation())
    for _ in range(NUM_EVENTS):
        emitter.stream(new_subject()).emit(REQUESTED)
    assert emitter.close(0.5) == emitter.num_unshipped == NUM_EVENTS


def num_in_kafka() -> int:
    reader = open_reader(installation())
    try:
        return sum(reader.end_offsets(reader.partitions()).values())
    finally:
        reader.close()


def ship(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command("consumers", "ship", *arguments, timeout_s=DEADLINE_S)


@pytest.mark.usefixtures("prefix")
def test_ship_sends_what_an_ended_trainer_left(
    kafka: KafkaService, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_events()
    away = ship("--json")
    assert (away.returncode, away.stdout) == (5, "")
    assert "Traceback" not in away.stderr
    assert re.search(r"^error: Kafka at \S+ cannot be reached", away.stderr, re.MULTILINE)
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    for number in (NUM_EVENTS, 0):
        done = ship("--json")
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout) == {"shipped": number, "left": 0}
        assert num_in_kafka() == NUM_EVENTS
    assert ship().stdout == "sent 0 events, 0 left\n"


@pytest.mark.usefixtures("prefix")
def test_ship_makes_nothing_in_a_home_without_a_spool() -> None:
    assert json.loads(ship("--json").stdout) == {"shipped": 0, "left": 0}
    assert not installation().home.exists()


def test_ship_refuses_a_home_whose_log_is_local() -> None:
    refused = ship()
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "is local, nothing is sent from it; set KAFKA_BOOTSTRAP_SERVERS" in refused.stderr
    assert not installation().home.exists()


@pytest.mark.usefixtures("prefix")
def test_status_names_how_many_events_of_this_home_wait(
    call: Call, kafka: KafkaService, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_events()
    away = call("status", "--check")
    assert (away.code, away.out) == (5, "")
    assert away.err.endswith(" 3 events of this home wait for it\n")
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    checked = call("status", "--check", "--max-lag", "0")
    assert checked.code == 6
    assert checked.out.startswith("not sent: 3 events wait in this home's spool, the oldest")
    assert "`cua-project ship` sends them" in checked.out
    assert call("status", "--json").json["waiting_in_spool"] == NUM_EVENTS
    assert "not sent   3 events wait in this home's spool" in call("status").out
    assert ship().returncode == 0
    assert call("status", "--check", "--max-lag", "1h") == (0, "ok\n", "")


@pytest.mark.usefixtures("prefix")
def test_up_sends_what_an_ended_trainer_left_and_leaves_no_process(
    kafka: KafkaService, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_events()
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    words = [sys.executable, "-m", "consumers", "up", "--port", "0", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as up:
        try:
            assert up.stdout is not None
            up.stdout.readline()
            (child,) = psutil.Process(up.pid).children()
            path = installation().local_log_path
            eventually(
                lambda: not read_waiting(path, None, datetime.now(UTC)).num_records, DEADLINE_S
            )
            assert num_in_kafka() == NUM_EVENTS
            up.send_signal(signal.SIGTERM)
            assert up.wait(DEADLINE_S) == 0
        finally:
            up.kill()
    assert not child.is_running()


@pytest.mark.usefixtures("prefix")
def test_a_training_whose_end_waits_in_this_home_is_not_stale(
    call: Call, kafka: KafkaService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the tables it runs and has been silent for an hour; what they lack is not silence."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    with Emitter.open(installation(), clock=lambda: an_hour_ago) as emitter:
        training = emitter.stream(f"training/{training_id('a')}")
        training.emit(TrainingCreated(run_name="a", recipe=RECIPE, total_steps=1, config={}))
        training.emit(TrainingInitializing())
        training.emit(TrainingStarted(current_step=0))
        emitter.flush()
    assert call("run", "--once").code == 0
    assert "stale: no heartbeat from a;" in call("status", "--check").out
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", f"127.0.0.1:{free_port()}")
    leave_events()
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    with contextlib.closing(sqlite3.connect(installation().local_log_path)) as spool, spool:
        spool.execute("UPDATE records SET appended_at = appended_at - 3600000000")
    checked = call("status", "--check")
    assert checked.out.startswith("not sent: 3 events")
    assert len(checked.out.splitlines()) == 1
