"""The embedded database as its users see it: ask for its URL and it runs; stop it.

One server per CUA_HOME.

Connect first, else start under a file lock. The server belongs to a keeper process of its own
session (`postgres_keeper`), so it outlives the command that started it and ends by itself when it
is idle.
"""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg2

import consumers
from consumers.embedded_postgres import supervisor
from consumers.embedded_postgres.cluster import Cluster, make_private, try_lock
from consumers.errors import UnreachableError

IDLE_S = 600.0
"""Time without clients after which the server ends (`CUA_DATABASE_IDLE_S` overrides)."""
STOP_TIMEOUT_S = 60.0
LIBPQ_16 = 160000


def ensure_running(folder: Path, environ: Mapping[str, str]) -> str:
    """The URL (libpq's) of the embedded database in `folder`, started if it does not run.

    UnreachableError says why it cannot.
    """
    cluster = Cluster(folder, environ)
    if url := running_url(cluster):
        return url
    try:
        make_private(folder)
        with _lock(folder / "start.lock"):
            if url := running_url(cluster):
                return url
            _start_keeper(folder, environ)
            url = running_url(cluster)
    except OSError as error:
        message = (
            f"expected to keep the embedded database in {folder}, found {error}; set CUA_HOME to a"
            " folder of yours, or DATABASE_URL"
        )
        raise UnreachableError(message) from None
    if url is None:
        message = (
            f"the embedded database in {folder} started and does not answer; see {cluster.log_path}"
        )
        raise UnreachableError(message)
    return url


def stop_running(folder: Path) -> bool:
    """End the embedded database and wait for its end; False when it did not run."""
    if not folder.exists():
        return False
    with _lock(folder / "start.lock"):
        keeper = os.open(folder / "keeper.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if try_lock(keeper):
                return False
            os.kill(
                int(os.pread(keeper, 20, 0)), signal.SIGTERM
            )  # the lock is held, so this is its holder
            deadline = time.monotonic() + STOP_TIMEOUT_S
            while not try_lock(keeper):
                if time.monotonic() > deadline:
                    message = (
                        f"the embedded database in {folder} has not ended within"
                        f" {STOP_TIMEOUT_S:.0f} s"
                    )
                    raise UnreachableError(message)
                time.sleep(0.02)
        finally:
            os.close(keeper)
    return True


def running_url(cluster: Cluster) -> str | None:
    """The URL when the server runs and takes our password, so that another installation's on that port is never mistaken for it."""
    state = cluster.folder / "server.json"
    try:
        url = cluster.url(int(json.loads(state.read_text())["port"]))
        os.utime(state)  # somebody wants it: the keeper counts idle time from here
    except (OSError, ValueError, KeyError):
        return None
    # A foreign server on the port could ask for the password in the clear: where libpq can refuse
    # that, it does.
    strict = (
        {"require_auth": "scram-sha-256"} if psycopg2.extensions.libpq_version() >= LIBPQ_16 else {}
    )
    try:
        psycopg2.connect(url, connect_timeout=5, **strict).close()
    except psycopg2.OperationalError:
        return None
    return url


def _start_keeper(folder: Path, environ: Mapping[str, str]) -> None:
    idle_s = environ.get("CUA_DATABASE_IDLE_S") or str(IDLE_S)
    with (folder / "keeper.log").open("wb") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", supervisor.__name__, str(folder), idle_s],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=Path(consumers.__file__).parents[
                1
            ],  # where -m finds the package, whatever the caller's folder is
            env=dict(environ),
            start_new_session=True,
        )
    assert keeper.stdout is not None  # noqa: S101  # it is a pipe
    with keeper.stdout:
        answer = keeper.stdout.readline().strip()
    keeper.returncode = 0  # detached on purpose: not ours to wait for
    if answer != supervisor.READY:
        found = answer or f"its keeper ended without a word, see {folder / 'keeper.log'}"
        message = f"the embedded database in {folder} did not start: {found}"
        raise UnreachableError(message)


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
