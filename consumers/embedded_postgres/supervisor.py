"""The process that owns the embedded PostgreSQL: starts it, stops it when idle, exits with it.

Run as `python -m consumers.embedded_postgres.supervisor FOLDER IDLE_S`; prints one line, `ready` or
the reason of a failure, and nothing more. Only `consumers.embedded_postgres.postgres` starts it.
When it is killed, the server stops too (see `unprivileged`).
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg2
from filelock import FileLock, Timeout

from consumers.embedded_postgres.cluster import Cluster, stop, write_private
from consumers.embedded_postgres.connection import connect
from consumers.embedded_postgres.libpq_variables import forget_libpq_variables
from consumers.errors import UnreachableError

READY = "ready"
START_LOCK = "start.lock"
"""Held while a command looks for a running server and starts one."""
STATE_FILE = "server.json"
"""The server's port; its modification time is the last use."""
START_TIMEOUT_S = 60.0
"""Enough for crash recovery of a few hundred megabytes of WAL on a slow disk."""
ATTEMPTS = 5
"""Ports tried before giving up: another process may take a free one before the server listens."""


class _Stopped(BaseException):
    """SIGTERM or SIGINT arrived."""


def supervisor_lock(folder: Path) -> FileLock:
    """The lock that a supervisor holds for its whole life; its file contains the process id."""
    return FileLock(folder / "supervisor.lock", mode=0o600)


def supervise(cluster: Cluster, idle_s: float, report: Callable[[str], None]) -> None:
    """Run the cluster's server until it is idle, exits, or a signal arrives. UnreachableError."""
    lock = supervisor_lock(cluster.folder)
    start_lock = FileLock(cluster.folder / START_LOCK, mode=0o600)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        report(READY)  # another supervisor was faster; its server is the one to use
        return
    Path(lock.lock_file).write_text(str(os.getpid()), encoding="utf-8")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _raise_stopped)
    state = cluster.folder / STATE_FILE
    try:
        cluster.initialise()
        with cluster.alone(START_TIMEOUT_S) as server_lock:
            server, port = _start(cluster, server_lock, _last_port(state))
        try:
            write_private(state, json.dumps({"port": port}))
            report(READY)
            _wait_until_idle(cluster, server, port, state, idle_s, start_lock)
        finally:
            stop(server)
    except _Stopped:
        pass
    finally:
        # In this order: a command that gets the start lock must find the supervisor's lock free.
        lock.release()
        start_lock.release()


def _raise_stopped(_number: int, _frame: object) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(
            number, signal.SIG_IGN
        )  # a second signal must not interrupt the server's shutdown
    raise _Stopped


def _start(cluster: Cluster, lock: int, wanted: int) -> tuple[subprocess.Popen[bytes], int]:
    for attempt in range(ATTEMPTS):
        port = wanted if attempt == 0 and wanted else free_port()
        server = cluster.start(port, lock, {})
        try:
            cluster.wait_ready(server, port, START_TIMEOUT_S)
        except UnreachableError:
            has_exited = server.poll() is not None
            stop(server)
            if not has_exited or attempt == ATTEMPTS - 1:
                raise
        except BaseException:
            stop(server)
            raise
        else:
            return server, port
    raise AssertionError  # the last attempt returns or raises


def _last_port(state: Path) -> int:
    """The port of the last start, so that a notebook's URL stays valid; 0 if it is not free."""
    try:
        port = int(json.loads(state.read_text(encoding="utf-8"))["port"])
    except (OSError, ValueError, KeyError):
        return 0
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return 0
    return port


def free_port() -> int:
    """A port on loopback that is free at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_idle(
    cluster: Cluster,
    server: subprocess.Popen[bytes],
    port: int,
    state: Path,
    idle_s: float,
    start_lock: FileLock,
) -> None:
    """Return when the server has exited, or with `start_lock` held when it is idle.

    Idle: for `idle_s` no client was connected, and no command asked for the URL, which touches
    `state`.
    """
    connection = connect(cluster.url(port), application_name="cua-project supervisor")
    connection.autocommit = True
    last_client = time.time()
    interval_s = min(5.0, idle_s / 4)
    while server.poll() is None:
        try:
            server.wait(interval_s)
        except subprocess.TimeoutExpired:
            pass
        else:
            return
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
                    " AND pid <> pg_backend_pid()"
                )
                row = cursor.fetchone()
        except psycopg2.Error:
            return  # a server that closes our connection is shutting down
        if row is not None and row[0]:
            last_client = time.time()
        if time.time() - max(last_client, state.stat().st_mtime) < idle_s:
            continue
        # A command that starts the database holds this lock until it has the URL: never stop the
        # server in that window.
        try:
            start_lock.acquire(blocking=False)
        except Timeout:
            continue
        if time.time() - state.stat().st_mtime >= idle_s:
            connection.close()
            return
        start_lock.release()


def main(arguments: list[str]) -> None:
    """The process's entry point."""
    folder, idle_s = Path(arguments[0]), float(arguments[1])
    forget_libpq_variables(os.environ)

    def report(line: str) -> None:
        print(line, flush=True)  # noqa: T201  # the one line that the starting command waits for
        with Path(os.devnull).open("w", encoding="utf-8") as devnull:
            os.dup2(devnull.fileno(), sys.stdout.fileno())

    try:
        supervise(Cluster(folder, os.environ), idle_s, report)
    except (UnreachableError, OSError, psycopg2.Error) as error:
        report(" / ".join(str(error).split("\n")))
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
