"""A PostgreSQL that takes connections and answers nothing is named, and not waited for for ever."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from consumers.database.connection import Connection, connect, connected
from consumers.database.location import libpq_url
from consumers.database.migrate import migrate
from consumers.database.silence import SilenceWatch
from schemas.installation import read_installation
from tests.reference_fold.histories import history
from tests.support.logs import write_local_log
from tests.support.postgres import PostgresServer, execute, one, running_postgres
from tests.support.running_command import Command

pytestmark = [pytest.mark.services, pytest.mark.slow]
SILENCE = "takes connections but has not answered"


class Server:
    """A server of these tests' own, with the tables of one training's log."""

    def __init__(self, postgres: PostgresServer, home: Path) -> None:
        self._postgres = postgres
        self.url = postgres.url(postgres.create())
        migrate(self.url)
        self.environ = {"PATH": os.environ["PATH"], "CUA_HOME": str(home), "DATABASE_URL": self.url}
        self.log_path = read_installation(self.environ).local_log_path
        write_local_log(self.log_path, history("first", 1))
        assert self.run("run", "--once").wait(60) == 0

    def run(self, *words: str) -> Command:
        return Command(words, self.environ)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Every process of the server is stopped."""
        pid = (self._postgres.cluster.data / "postmaster.pid").read_text().split()[0]
        postmaster = psutil.Process(int(pid))
        # Stopped first, so that it has no child more; one that ends meanwhile is none to stop.
        postmaster.suspend()
        processes = [postmaster]
        try:
            for process in postmaster.children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    process.suspend()
                    processes.append(process)
            yield
        finally:
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Whoever reads trainings waits, in the middle of a statement."""
        with connected(self.url, "test") as connection:
            with connection.cursor() as cursor:
                cursor.execute("LOCK TABLE cua.training IN ACCESS EXCLUSIVE MODE")
            yield

    def await_blocked(self) -> None:
        """Until a session waits for the lock."""
        deadline = time.monotonic() + 60
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while not one(self.url, waiting):
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Each test leaves it running and answering."""
    folder = tmp_path_factory.mktemp("silent")
    with running_postgres(folder, {}) as postgres:
        yield Server(postgres, folder / "home")


def test_every_command_that_meets_a_silent_server_says_so_and_ends(server: Server) -> None:
    codes = {
        "status": 5,
        "parked list": 5,
        "migrate": 5,
        "verify": 5,
        "rebuild": 5,
        "run --once": 5,
        "doctor": 1,
        "psql -c SELECT": 2,
    }
    with server.stopped():
        commands = {words: server.run(*words.split()) for words in codes}
        assert {words: command.wait(90) for words, command in commands.items()} == codes
    for words, command in commands.items():
        assert ("timeout expired" if words.startswith("psql") else SILENCE) in command.said
        assert "Traceback" not in command.said
    assert "***" in commands["status"].said


def test_a_statement_in_the_middle_ends_after_the_limit_or_with_ctrl_c(server: Server) -> None:
    with server.locked():
        status, verify = server.run("status"), server.run("verify")
        for _ in range(2):
            server.await_blocked()
        while one(server.url, "SELECT count(*) FROM pg_locks WHERE NOT granted") != 2:
            time.sleep(0.1)
        with server.stopped():
            assert "for up to 30 s" in status.says(SILENCE)
            assert "waiting until it does" in verify.says(SILENCE)
            verify.process.send_signal(signal.SIGINT)
            assert verify.wait(15) == 130
            assert status.wait(60) == 5
            assert SILENCE in status.said.splitlines()[-1]


def test_a_projector_names_the_silence_and_goes_on_when_the_server_does(server: Server) -> None:
    projector = server.run("run")
    try:
        projector.says("caught up", 60)
        with server.stopped():
            assert "waiting until it does" in projector.says(SILENCE)
            write_local_log(server.log_path, history("second", 2))
        projector.says("answers again")
        deadline = time.monotonic() + 60
        while one(server.url, "SELECT count(*) FROM cua.training") != 2:
            assert time.monotonic() < deadline, projector.said
            time.sleep(0.2)
    finally:
        projector.process.terminate()
        assert projector.wait(30) == 0


def watched(watch: SilenceWatch, url: str) -> Connection:
    connection = connect(url, "test")
    address = libpq_url(url)
    with watch.opening(address, str):
        watch.add(connection, address)
    return connection


def test_a_statement_that_takes_long_is_no_silence(database_url: str) -> None:
    watch = SilenceWatch()
    watch.start(1.0)
    connection = watched(watch, database_url)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(6)")
    assert watch.gave_up is None
    execute(database_url, "SELECT 1")
    connection.close()
