"""The embedded database is ours: libpq's variables in the shell are another server's."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from consumers.database.connection import connected
from consumers.database.location import unreachable
from consumers.embedded_postgres import connection as embedded
from consumers.embedded_postgres.cluster import Cluster, stop
from consumers.embedded_postgres.postgres import ensure_running, stop_running
from consumers.errors import UnreachableError
from tests.support.ports import free_port

pytestmark = pytest.mark.services

FOREIGN = {
    "PGHOST": "db.example.invalid",
    "PGHOSTADDR": "127.0.0.9",
    "PGPORT": "1",
    "PGDATABASE": "other",
    "PGUSER": "other",
    "PGPASSWORD": "other",
    "PGPASSFILE": "/nonexistent/pgpass",
    "PGREQUIREAUTH": "none",
    "PGCHANNELBINDING": "require",
    "PGSERVICE": "production",
    "PGSERVICEFILE": "/nonexistent/services",
    "PGSYSCONFDIR": "/nonexistent",
    "PGOPTIONS": "-c default_transaction_read_only=on -c search_path=nowhere",
    "PGAPPNAME": "other",
    "PGSSLMODE": "require",
    "PGSSLNEGOTIATION": "direct",
    "PGSSLROOTCERT": "/nonexistent/root.crt",
    "PGSSLCERT": "/nonexistent/client.crt",
    "PGSSLKEY": "/nonexistent/client.key",
    "PGSSLMINPROTOCOLVERSION": "TLSv1.3",
    "PGREQUIREPEER": "nobody-else",
    "PGGSSENCMODE": "require",
    "PGGSSLIB": "gssapi",
    "PGKRBSRVNAME": "other",
    "PGCONNECT_TIMEOUT": "1",
    "PGCLIENTENCODING": "LATIN1",
    "PGTARGETSESSIONATTRS": "read-only",
    "PGLOADBALANCEHOSTS": "random",
    "PGDATESTYLE": "German",
    "PGTZ": "Mars/Olympus",
    "PGGEQO": "perhaps",
    "PGLOCALEDIR": "/nonexistent",
    "PGDATA": "/nonexistent/data",
    "PGMAXPROTOCOLVERSION": "3.0",
}
"""Every one alone makes a connection of libpq fail, or another."""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "home"
    stop_running(tmp_path / "home" / "database")


def shell(home: Path) -> dict[str, str]:
    """The environment of a user with such variables and no configured database."""
    return {"PATH": os.defpath, "HOME": str(home.parent), "CUA_HOME": str(home)} | FOREIGN


def cua_project(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "consumers", *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env=shell(home),
    )


def test_every_command_reaches_the_embedded_database_whatever_libpq_reads_in_the_shell(
    home: Path,
) -> None:
    """Also the keeper that starts it, psql, and alembic's own command line."""
    for words in (["run", "--once"], ["verify"], ["psql", "-c", "SELECT 1"], ["database", "stop"]):
        done = cua_project(home, *words)
        assert done.returncode == 0, (words, done.stderr)
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "current"],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env=shell(home),
        cwd=Path(embedded.__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr


def test_python_queries_reach_it_and_the_variables_of_the_notebook_stay(home: Path) -> None:
    program = (
        "import os\n"
        "from consumers.queries import get_session, init_database, list_trainings\n"
        "before = dict(os.environ)\n"
        "init_database()\n"
        "with get_session() as session:\n"
        "    assert list_trainings(session) == []\n"
        "assert dict(os.environ) == before\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env=shell(home),
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted(FOREIGN))
def test_no_single_variable_changes_how_the_running_server_is_reached(
    name: str, embedded_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, FOREIGN[name])
    with (
        contextlib.closing(embedded.connect(embedded_url)) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SHOW default_transaction_read_only")
        assert cursor.fetchone() == ("off",)
    assert os.environ[name] == FOREIGN[name]


@pytest.fixture(scope="module")
def embedded_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("one") / "database"
    yield ensure_running(folder, {"PATH": os.defpath})
    stop_running(folder)


def test_a_start_that_the_server_refuses_says_so_at_once_in_the_servers_words(
    tmp_path: Path,
) -> None:
    """It waited for three minutes, then printed the end of a log without an error."""
    cluster = Cluster(tmp_path / "database", {"PATH": os.defpath})
    cluster.initialise()
    (cluster.folder / "password").write_text("another")
    with pytest.raises(UnreachableError, match="password authentication failed for user"):
        ensure_running(cluster.folder, {"PATH": os.defpath})


def test_a_clients_error_is_the_message_when_the_server_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(tmp_path / "database", {"PATH": os.defpath})
    cluster.initialise()
    with cluster.alone(30) as lock:
        port = free_port()
        server = cluster.start(port, lock, {})
    try:
        cluster.wait_ready(server, port, 30)
        monkeypatch.setitem(embedded.GIVEN, "sslmode", "require")
        with pytest.raises(UnreachableError, match="server does not support SSL"):
            cluster.wait_ready(server, port, 0.1)
    finally:
        stop(server)


def test_a_configured_database_keeps_libpqs_variables_and_its_failure_names_them(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They fill what DATABASE_URL does not give, as for psql."""
    with monkeypatch.context() as shell:
        shell.setenv("PGSSLMODE", "require")
        message = str(unreachable(database_url, psycopg2.OperationalError("no SSL")))
    assert "(PGSSLMODE of the environment apply" in message


def test_time_zone_and_date_style_of_the_shell_change_no_text_of_a_row(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hashes are computed from texts. libpq sends PGTZ after our settings, so that it would win."""
    with monkeypatch.context() as shell:
        shell.setenv("PGTZ", "Asia/Tokyo")
        shell.setenv("PGDATESTYLE", "German")
        shell.setattr(embedded, "_own", set())
        with connected(database_url, "test") as connection, connection.cursor() as cursor:
            cursor.execute("SELECT '2026-01-02 03:04:05+00'::timestamptz::text")
            assert cursor.fetchone() == ("2026-01-02 03:04:05+00",)
