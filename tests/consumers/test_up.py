"""`cua-project up`: database, projector and monitor in one process that stops gracefully."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from uuid import UUID, uuid4

import psycopg2
import pytest

from consumers.embedded_postgres.postgres import stop_running
from producer.emit import Emitter
from schemas.environment import EnvironmentRequested
from schemas.installation import Installation, read_installation

pytestmark = pytest.mark.services

DEADLINE_S = 60
PROGRAM = (
    sys.executable,
    "-c",
    "from consumers.cli import main; main()",
    "up",
    "--port",
    "0",
    "--json",
)


@pytest.fixture
def installation() -> Iterator[Installation]:
    installation = read_installation(os.environ)
    yield installation
    stop_running(installation.database_dir)


@contextlib.contextmanager
def up(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    process = subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        yield process, first_line(process.stdout)
    finally:
        process.kill()
        process.communicate()


def first_line(stream: IO[str] | None) -> dict[str, str]:
    assert stream is not None
    line: dict[str, str] = json.loads(stream.readline())
    return line


def emit_environments(installation: Installation, number: int) -> set[UUID]:
    owners = {uuid4() for _ in range(number)}
    with Emitter.open(installation) as emitter:
        for owner in owners:
            emitter.stream(f"environment/{owner}").emit(
                EnvironmentRequested(env_type="android_sim", box_type="android", config={})
            )
        emitter.flush(30)
    return owners


def projected(url: str) -> set[UUID]:
    with contextlib.closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id::text FROM cua.environment")
        return {UUID(row[0]) for row in cursor.fetchall()}


def test_a_fresh_home_gets_database_tables_and_monitor(installation: Installation) -> None:
    with up() as (process, addresses):
        with urllib.request.urlopen(addresses["monitor"], timeout=10) as page:  # noqa: S310  # our own URL
            assert b"No training yet" in page.read()
        owners = emit_environments(installation, 3)
        deadline = time.monotonic() + DEADLINE_S
        while projected(addresses["database"]) != owners:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0


def test_on_sigterm_the_tables_get_everything_that_the_log_has(installation: Installation) -> None:
    with up() as (process, addresses):
        owners = emit_environments(installation, 500)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
    assert projected(addresses["database"]) == owners


def test_embedded_tables_of_an_older_version_are_rebuilt_from_the_log(
    installation: Installation,
) -> None:
    with up() as (process, addresses):
        owners = emit_environments(installation, 3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
    with (
        contextlib.closing(psycopg2.connect(addresses["database"])) as connection,
        connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE cua.projection SET version = 0")
        cursor.execute("DELETE FROM cua.environment")
    with up() as (process, addresses):
        owners |= emit_environments(installation, 1)
        deadline = time.monotonic() + DEADLINE_S
        while projected(addresses["database"]) != owners:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0


def test_an_embedded_database_that_is_stopped_beside_it_comes_back(
    installation: Installation,
) -> None:
    with up() as (process, addresses):
        owners = emit_environments(installation, 2)
        assert stop_running(installation.database_dir)
        owners |= emit_environments(installation, 2)
        deadline = time.monotonic() + DEADLINE_S
        while True:
            with contextlib.suppress(psycopg2.OperationalError):
                if projected(addresses["database"]) == owners:
                    break
            assert time.monotonic() < deadline
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 0


def test_it_ends_when_the_process_that_wants_it_is_gone(installation: Installation) -> None:
    wanting = (
        f"import os, subprocess, sys; child = subprocess.Popen([*{PROGRAM!r}, '--while-pid',"
        " str(os.getpid())], stdout=subprocess.PIPE, text=True); print(child.pid,"
        " child.stdout.readline(), end='', flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", wanting], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid, _, addresses = parent.stdout.readline().partition(" ")
    owners = emit_environments(installation, 5)
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + DEADLINE_S
    with contextlib.suppress(ProcessLookupError):
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert projected(json.loads(addresses)["database"]) == owners


def test_a_port_that_is_taken_is_a_usage_error(installation: Installation) -> None:
    with up() as (_, addresses):
        port = addresses["monitor"].rstrip("/").rpartition(":")[2]
        done = subprocess.run(
            [*PROGRAM, "--port", port],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
    assert done.returncode == 2
    assert f"error: cannot listen on port {port}: Address already in use" in done.stderr
    assert installation.home.exists()
