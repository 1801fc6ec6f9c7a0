"""The process that owns the embedded PostgreSQL.

Starts it, ends it when nobody has used it for a while, and never outlives it.

Run as `python -m consumers.embedded_postgres.supervisor FOLDER IDLE_S`; prints one line, `ready` or
what went wrong, then is silent. Only `consumers.embedded_postgres.postgres` starts it. Killed by
SIGKILL, it takes the server with it (see `unprivileged`).
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

from consumers.embedded_postgres.cluster import Cluster, stop, try_lock, write_private
from consumers.errors import UnreachableError

READY = "ready"
START_TIMEOUT_S = 60.0
"""Crash recovery of a few hundred megabytes of WAL on a slow disk."""
ATTEMPTS = 5
"""Free ports tried before giving up: between finding one and listening on it another process may
take it."""


class _Stopped(BaseException):
    """SIGTERM or SIGINT arrived."""


def keep(cluster: Cluster, idle_s: float, say: Callable[[str], None]) -> None:
    """Hold the cluster's keeper lock and run its server until it is idle, ends or a signal comes.

    UnreachableError.
    """
    lock = os.open(cluster.folder / "keeper.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not try_lock(lock):
        say(READY)  # another keeper was quicker; its server is the one to use
        return
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _raise_stopped)
    state = cluster.folder / "server.json"
    try:
        cluster.initialise()
        with cluster.alone(START_TIMEOUT_S) as server_lock:
            server, port = _start(cluster, server_lock, _last_port(state))
        try:
            write_private(state, json.dumps({"port": port}))
            say(READY)
            _wait_until_idle(cluster, server, port, state, idle_s)
        finally:
            stop(server)
    except _Stopped:
        pass


def _raise_stopped(_number: int, _frame: object) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(
            number, signal.SIG_IGN
        )  # the first is enough; a second must not cut the server's end short
    raise _Stopped


def _start(cluster: Cluster, lock: int, wanted: int) -> tuple[subprocess.Popen[bytes], int]:
    for attempt in range(ATTEMPTS):
        port = wanted if attempt == 0 and wanted else free_port()
        server = cluster.start(port, lock, {})
        try:
            cluster.wait_ready(server, port, START_TIMEOUT_S)
        except UnreachableError:
            stop(server)
            if attempt == ATTEMPTS - 1:
                raise
        except BaseException:
            stop(server)
            raise
        else:
            return server, port
    raise AssertionError  # the last attempt returns or raises


def _last_port(state: Path) -> int:
    """The port of the last time, so that a notebook's URL stays good.

    0 when there was none or somebody else has it now.
    """
    try:
        port = int(json.loads(state.read_text())["port"])
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
    """A port on loopback that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_idle(
    cluster: Cluster, server: subprocess.Popen[bytes], port: int, state: Path, idle_s: float
) -> None:
    """Return when the server ended, or when for `idle_s` it had no client and nobody asked for it (which touches `state`)."""
    connection = psycopg2.connect(cluster.url(port), application_name="cua-project keeper")
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
            return  # a server that closes our connection is ending
        if row is not None and row[0]:
            last_client = time.time()
        if time.time() - max(last_client, state.stat().st_mtime) < idle_s:
            continue
        # Whoever starts holds this lock from before it looks for a server until it has one: never
        # end one under its hands.
        start = os.open(cluster.folder / "start.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if try_lock(start) and time.time() - state.stat().st_mtime >= idle_s:
            connection.close()
            stop(server)  # the lock is kept until this process ends
            return
        os.close(start)


def main(arguments: list[str]) -> None:
    """The process's entry point."""
    folder, idle_s = Path(arguments[0]), float(arguments[1])

    def say(line: str) -> None:
        print(line, flush=True)  # noqa: T201  # the one line that whoever started us waits for
        with Path(os.devnull).open("w") as devnull:
            os.dup2(devnull.fileno(), sys.stdout.fileno())

    try:
        keep(Cluster(folder, os.environ), idle_s, say)
    except (UnreachableError, OSError) as error:
        say(str(error))
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
