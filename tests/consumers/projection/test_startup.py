"""`cua-project run` may start before PostgreSQL and Kafka: it waits, and says for which."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url

from consumers.errors import UnreachableError
from consumers.projection.startup import wait_until_reachable
from schemas.installation import read_installation
from tests.support.eventually import eventually
from tests.support.kafka import KafkaService
from tests.support.logs import logged_events, write_local_log
from tests.support.paths import ROOT
from tests.support.ports import free_port
from tests.support.postgres import running_postgres

_REFUSED, _AWAY = "not with that password", "nobody answers"
NOBODY = "127.0.0.1:1"
AWAY = {"DATABASE_URL": f"postgresql://someone:s3cret@{NOBODY}/training"}


@contextmanager
def running(log: Path, *arguments: str, **environ: str) -> "Iterator[subprocess.Popen[bytes]]":
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "consumers", "run", "--json", *arguments],
            env=os.environ | environ,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_what_is_away_is_waited_for_until_it_is_there() -> None:
    problems = [UnreachableError("away"), UnreachableError("still away")]

    def attempt() -> str:
        if problems:
            raise problems.pop(0)
        return "there"

    assert wait_until_reachable(attempt, threading.Event()) == "there"


def test_a_refusal_ends_the_wait_and_so_does_a_stop() -> None:
    stop = threading.Event()

    def refused() -> None:
        raise UnreachableError(_REFUSED, is_refusal=True)

    def away() -> None:
        raise UnreachableError(_AWAY)

    with pytest.raises(UnreachableError, match=_REFUSED):
        wait_until_reachable(refused, stop)
    stop.set()
    assert wait_until_reachable(away, stop) is None


@pytest.mark.slow
def test_a_projector_that_waits_for_its_database_says_so_and_stops_when_it_is_told_to(
    tmp_path: Path,
) -> None:
    log = tmp_path / "run.log"
    with running(log, **AWAY) as process:
        eventually(lambda: "retrying until it works" in log.read_text())
        assert f"cannot connect to PostgreSQL at postgresql://someone:***@{NOBODY}" in (
            log.read_text()
        )
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=20)
        assert (process.returncode, json.loads(out)["events"]) == (0, 0)


@pytest.mark.slow
def test_once_waits_for_nothing(tmp_path: Path) -> None:
    with running(tmp_path / "run.log", "--once", **AWAY) as process:
        assert process.wait(30) == 5


@pytest.mark.services
def test_a_wrong_password_is_not_waited_for(tmp_path: Path, migrated_url: str) -> None:
    wrong = make_url(migrated_url).set(password="n0t-it")  # noqa: S106  # a wrong one
    url = wrong.render_as_string(hide_password=False)
    with running(tmp_path / "run.log", DATABASE_URL=url) as process:
        assert process.wait(30) == 5
    assert "password authentication failed" in (tmp_path / "run.log").read_text()


@pytest.mark.services
@pytest.mark.slow
def test_a_projector_projects_once_its_database_is_up(tmp_path: Path) -> None:
    write_local_log(read_installation(os.environ).local_log_path, logged_events("a")[:50])
    log, port = tmp_path / "run.log", free_port()
    # The password is known only once the server has been made.
    with running_postgres(tmp_path / "pg", {}, port=port) as server:
        url = server.url(server.create())
    with running(log, DATABASE_URL=url) as process:
        eventually(lambda: "retrying until it works" in log.read_text())
        with running_postgres(tmp_path / "pg", {}, port=port):
            eventually(lambda: "works again after" in log.read_text())
            eventually(lambda: "caught up" in log.read_text())
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=20)
    assert json.loads(out)["events"] > 0


@pytest.mark.slow
def test_a_projector_goes_on_once_kafka_is_up(tmp_path: Path, migrated_url: str) -> None:
    log = tmp_path / "run.log"
    service = KafkaService()
    environ = {"DATABASE_URL": migrated_url, "KAFKA_BOOTSTRAP_SERVERS": service.bootstrap_servers}
    try:
        with running(log, **environ) as process:
            eventually(lambda: "retrying until it works" in log.read_text())
            assert f"Kafka at {service.bootstrap_servers} cannot be reached" in log.read_text()
            service.start()
            eventually(lambda: "works again after" in log.read_text())
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
    finally:
        service.close()
