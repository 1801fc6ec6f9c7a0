"""`/metrics` and `/healthz`: of the process, of the tables, and when a server is away."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from consumers.database.connection import connected
from consumers.database.lease import ProjectorLease
from consumers.embedded_postgres.postgres import stop_running
from consumers.metrics.pages import MetricsPages
from consumers.metrics.probe import Probe, Seen
from consumers.projection.activity import Activity
from schemas.installation import read_installation
from tests.reference_fold.histories import LoggedEvent, Shape
from tests.support.logs import logged_events, write_local_log
from tests.support.ports import free_port
from tests.support.postgres import PostgresServer

SMALL = Shape(steps=1, groups=1, group_size=2, turns=2, has_trouble=False)
DEADLINE_S = 30
PROGRAM = (sys.executable, "-m", "consumers")


class SilentProbe(Probe):
    """Log and database are away."""

    def look(self) -> Seen:
        return Seen()


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310  # our own server
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def samples(text: str) -> dict[str, float]:
    """Sum of each metric over its labels."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0) + sample.value
    return found


def wait_for(base: str, name: str, value: float) -> dict[str, float]:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        found = samples(get(f"{base}metrics")[1])
        if found.get(name) == value:
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


@contextlib.contextmanager
def projector(*arguments: str, command: str = "run") -> Iterator[str]:
    """Base URL of a running projector's metrics."""
    words = [*PROGRAM, command, "--metrics-port", "0", *arguments]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.match(r"metrics: (\S+)metrics, health: ", line):
                yield found[1]
                break
        else:
            pytest.fail("it never said where its metrics are")
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.services
def test_a_projector_counts_what_it_applied_and_what_it_holds(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    events = logged_events("a", shape=SMALL)
    index = next(i for i, one in enumerate(events) if b"cua.rollout.started" in one.value)
    events[index] = LoggedEvent(events[index].subject, b"{}")
    path = read_installation(os.environ).local_log_path
    with projector() as base:
        write_local_log(path, events)
        found = wait_for(base, "cua_log_end_offset", len(events))
        found = wait_for(base, "cua_lag_events", 0)
        parked = found["cua_parked"]
        assert parked >= 1
        assert found["cua_unapplied_records"] == parked
        assert found["cua_events_applied"] == len(events) - parked
        # The process counts after its commit, so that the lag may be seen to end before.
        found = wait_for(base, "cua_projector_events_applied_total", len(events) - parked)
        assert found["cua_position_offset"] == len(events)
        assert (found["cua_trainings"], found["cua_trainings_parked"]) == (1, 1)
        assert (found["cua_database_up"], found["cua_log_up"]) == (1, 1)
        assert found["cua_projector_seconds_since_last_commit"] < DEADLINE_S
        text = get(f"{base}metrics")[1]
        assert 'cua_projector_state{state="projecting"} 1.0' in text
        assert 'cua_unapplied_records{kind="unreadable",state="parked"} 1.0' in text
        assert re.search(r'cua_build_info\{.*version="0', text)
        assert get(f"{base}healthz") == (200, "ok, projecting\n")
        assert get(f"{base}other")[0] == 404


@contextlib.contextmanager
def kept(lease: ProjectorLease) -> Iterator[None]:
    """Held for however long the other process takes to start."""
    is_over = threading.Event()

    def keep() -> None:
        while not is_over.wait(0.5):
            lease.renew()

    with lease:
        keeping = threading.Thread(target=keep)
        keeping.start()
        try:
            yield
        finally:
            is_over.set()
            keeping.join()


@pytest.mark.services
def test_a_standby_is_healthy_and_says_for_whom_it_waits(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    with connected(migrated_url, "test") as connection:
        connection.autocommit = True
        lease = ProjectorLease(connection, "somewhere/1/x", time.monotonic)
        with kept(lease), projector() as base:
            deadline = time.monotonic() + DEADLINE_S
            while not (answer := get(f"{base}healthz"))[1].startswith("ok, standby"):
                assert time.monotonic() < deadline, answer
                time.sleep(0.1)
            assert answer[0] == 200
            assert "process 1 on somewhere" in answer[1]


@pytest.mark.services
@pytest.mark.slow
def test_a_database_that_is_away_is_503_after_half_a_minute_and_is_waited_out(
    postgres: PostgresServer, migrated_template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = postgres.create(migrated_template)
    monkeypatch.setenv("DATABASE_URL", postgres.url(name))
    with projector() as base:
        deadline = time.monotonic() + DEADLINE_S
        while get(f"{base}healthz") != (200, "ok, projecting\n"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        gone_at = time.monotonic()
        postgres.drop(name)
        wait_for(base, "cua_database_up", 0)
        assert get(f"{base}healthz")[0] == 200
        while (answer := get(f"{base}healthz"))[0] == 200:
            assert time.monotonic() - gone_at < 60
            time.sleep(0.5)
        assert time.monotonic() - gone_at >= 28
        assert answer[0] == 503
        assert "does not exist" in answer[1]
        assert samples(get(f"{base}metrics")[1])["cua_projector_healthy"] == 0


@pytest.mark.parametrize("missing", ["DATABASE_URL", "KAFKA_BOOTSTRAP_SERVERS"])
@pytest.mark.services
def test_the_port_is_open_while_the_start_waits_for_a_server(
    missing: str, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = {
        "DATABASE_URL": f"postgresql://a@127.0.0.1:{free_port()}/a",
        "KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{free_port()}",
    }
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    monkeypatch.setenv(missing, away[missing])
    is_kafka = missing == "KAFKA_BOOTSTRAP_SERVERS"
    with projector() as base:
        wait_for(base, "cua_database_up", int(is_kafka))
        wait_for(base, "cua_log_up", int(not is_kafka))
        deadline = time.monotonic() + DEADLINE_S
        while "refused" not in (answer := get(f"{base}healthz"))[1]:
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)
        assert 'cua_projector_state{state="projecting"} 0.0' in get(f"{base}metrics")[1]


@pytest.mark.services
def test_up_serves_both_paths_at_the_monitors_address() -> None:
    installation = read_installation(os.environ)
    process = subprocess.Popen(
        [*PROGRAM, "up", "--port", "0", "--json"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        base = json.loads(process.stdout.readline())["monitor"]
        wait_for(base, "cua_database_up", 1)
        wait_for(base, "cua_log_up", 1)
        assert get(f"{base}healthz")[0] == 200
        assert "No training yet" in get(base)[1]
    finally:
        process.kill()
        process.communicate()
        stop_running(installation.database_dir)


def test_health_is_judged_by_the_last_success_and_a_standby_has_none_to_show() -> None:
    now = [100.0]
    activity = Activity(lambda: now[0])
    pages = MetricsPages(SilentProbe(read_installation(os.environ), str), activity)
    assert pages.answer("/healthz").code == 200
    now[0] += 31
    assert pages.answer("/healthz").code == 503
    activity.worked(3, has_committed=True)
    activity.failed("Kafka is away")
    now[0] += 30
    assert pages.answer("/healthz").code == 200
    now[0] += 1
    unhealthy = pages.answer("/healthz")
    assert (unhealthy.code, unhealthy.content) == (503, b"no progress for 31 s: Kafka is away\n")
    activity.stood_by("another projector is running")
    assert pages.answer("/healthz").code == 200
    activity.began()
    activity.worked(2, has_committed=True)
    assert activity.num_events == 5


def test_with_log_and_database_away_the_process_still_answers_for_itself() -> None:
    pages = MetricsPages(SilentProbe(read_installation(os.environ), str), Activity())
    found = samples(pages.answer("/metrics").content.decode())
    assert (found["cua_database_up"], found["cua_log_up"]) == (0, 0)
    assert "cua_lag_events" not in found


def test_a_port_that_is_taken_is_a_usage_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*PROGRAM, "up", "--metrics-port", port],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=tmp_path,
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert f"cannot listen on 127.0.0.1 port {port} for metrics: Address already" in done.stderr
