"""A real PostgreSQL for tests.

One server per session on a free port in a temporary folder, a fresh database per test.

`database_url` is an empty database, `migrated_url` one with every migration applied (copied from a
template, some 30 ms).
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg2
import pytest

from consumers.database.connection import connected
from consumers.database.location import sqlalchemy_url
from consumers.embedded_postgres.cluster import Cluster, stop
from tests.support.ports import free_port

# Nothing of a test server has to survive a power cut. Two cores' worth of parallel tests need few
# connections.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "100",
    "shared_buffers": "64MB",
}
START_TIMEOUT_S = 60


@dataclass
class PostgresServer:
    """A running server. `create` and `drop` make databases; names are never used twice."""

    cluster: Cluster
    port: int
    _numbers: Iterator[int] = field(default_factory=count)

    def url(self, database: str = "postgres") -> str:
        """A database's URL for SQLAlchemy; `libpq_url` turns it into psql's."""
        return sqlalchemy_url(self.cluster.url(self.port, database))

    def create(self, template: str = "template0", encoding: str | None = None) -> str:
        """A new database, of another encoding than the server's if one is named; its name."""
        name = f"test_{next(self._numbers)}"
        other = f" ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'" if encoding else ""
        self._execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"{other}')
        return name

    def drop(self, name: str) -> None:
        """Remove a database, whoever is still connected to it."""
        self._execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def _execute(self, statement: str) -> None:
        with contextlib.closing(
            psycopg2.connect(self.cluster.url(self.port, "postgres"))
        ) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement)


def execute(url: str, statement: str) -> None:
    """Statements in a transaction of their own."""
    with connected(url, "test") as connection, connection, connection.cursor() as cursor:
        cursor.execute(statement)


def one(url: str, query: str) -> object:
    """The first row, or its only value; None when there is none."""
    with connected(url, "test") as connection, connection, connection.cursor() as cursor:
        cursor.execute(query)
        row = cursor.fetchone()
        return None if row is None else row[0] if len(row) == 1 else row


@contextlib.contextmanager
def running_postgres(
    folder: Path,
    settings: Mapping[str, str],
    allowed: str | None = None,
    port: int | None = None,
) -> Iterator[PostgresServer]:
    """A server of its own, on this port or a free one.

    `allowed`: a network whose hosts may connect, with the password.
    """
    cluster = Cluster(folder / "cluster", os.environ)
    cluster.initialise()
    if allowed is not None:
        with (cluster.data / "pg_hba.conf").open("a") as rules:
            rules.write(f"\nhost all all {allowed} scram-sha-256\n")
    with cluster.alone(START_TIMEOUT_S) as lock:
        port = port or free_port()
        server = cluster.start(port, lock, SETTINGS | dict(settings))
    try:
        cluster.wait_ready(server, port, START_TIMEOUT_S)
        yield PostgresServer(cluster, port)
    finally:
        stop(server)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """The session's server."""
    with running_postgres(Path(tmp_path_factory.mktemp("postgres")), {}) as server:
        yield server


@pytest.fixture
def database_url(postgres: PostgresServer) -> Iterator[str]:
    """An empty database of this test's own, as SQLAlchemy's URL."""
    name = postgres.create()
    yield postgres.url(name)
    postgres.drop(name)


@pytest.fixture(scope="session")
def migrated_template(postgres: PostgresServer) -> str:
    """Name of a database at the newest revision, to be copied."""
    from consumers.database.migrate import migrate

    name = postgres.create()
    migrate(postgres.url(name))
    return name


@pytest.fixture
def migrated_url(postgres: PostgresServer, migrated_template: str) -> Iterator[str]:
    """A database of this test's own at the newest revision, as SQLAlchemy's URL."""
    name = postgres.create(migrated_template)
    yield postgres.url(name)
    postgres.drop(name)
