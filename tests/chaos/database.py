"""The PostgreSQL of a run: a real server with its defaults, killed and started on the same data."""

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

import psycopg2

from consumers.database.location import sqlalchemy_url
from consumers.database.migrate import migrate
from consumers.embedded_postgres.cluster import DATABASE, Cluster, stop
from tests.support.ports import free_port

START_TIMEOUT_S = 90


class Database:
    """One server. It dies with this process."""

    def __init__(self, folder: Path) -> None:
        self._cluster = Cluster(folder, os.environ)
        self._cluster.initialise()
        self._port = free_port()
        self._server = self._start()
        migrate(self.url)

    @property
    def url(self) -> str:
        """The same after a restart."""
        return sqlalchemy_url(self._cluster.url(self._port, DATABASE))

    def _start(self) -> subprocess.Popen[bytes]:
        with self._cluster.alone(START_TIMEOUT_S) as lock:
            server = self._cluster.start(self._port, lock, {})
        self._cluster.wait_ready(server, self._port, START_TIMEOUT_S)
        return server

    def kill(self) -> None:
        """SIGKILL to the postmaster; its backends end when they notice."""
        self._server.kill()
        self._server.wait()

    def restart(self) -> None:
        """Start on the same data; returns once it takes connections."""
        self._server = self._start()

    def backends(self) -> list[int]:
        """Processes that serve projectors, the lease's apart."""
        with contextlib.closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'cua-project run' ORDER"
                " BY pid"
            )
            return [row[0] for row in cursor.fetchall()]

    def holder(self) -> int | None:
        """Process id of the projector that holds the lease."""
        with contextlib.closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT holder FROM cua_ops.lease")
            row = cursor.fetchone()
            found = re.search(r"/(\d+)/", row[0]) if row else None
            return int(found[1]) if found else None

    def connect(self) -> psycopg2.extensions.connection:
        """Raises psycopg2.OperationalError while it recovers."""
        url = self.url.replace("postgresql+psycopg2", "postgresql")
        return psycopg2.connect(url, connect_timeout=10)

    def close(self) -> None:
        """Stop the server. Idempotent."""
        stop(self._server)


def signal_backend(pid: int, number: signal.Signals) -> bool:
    """Send it when that process is still one of PostgreSQL's."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"postgres" not in words:
            return False
        os.kill(pid, number)
    except OSError:
        return False
    return True
