"""The embedded database for its users: ask for its URL and it runs; stop it.

One server per CUA_HOME. Connect first, else start it under a file lock. The server belongs to a
supervisor process in a session of its own, so it outlives the command that started it and stops by
itself when it is idle.
"""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg2
from filelock import FileLock, Timeout

import consumers
from consumers.embedded_postgres import supervisor
from consumers.embedded_postgres.cluster import Cluster, make_private
from consumers.embedded_postgres.connection import connect
from consumers.errors import CuaProjectError, UnreachableError, UsageError
from schemas.lock_holders import file_lock_holder
from schemas.path_errors import OUT_OF_SPACE, path_problem, unusable_folder

logger = logging.getLogger(__name__)

IDLE_S = 600.0
"""Time without clients after which the server stops (`CUA_DATABASE_IDLE_S` overrides)."""
STOP_TIMEOUT_S = 60.0
START_TURN_S = 15.0
"""Starting takes a second or two; a process that needs longer is stopped or its disk hangs."""
POLL_S = 0.2
LIBPQ_16 = 160000


def ensure_running(folder: Path, environ: Mapping[str, str]) -> str:
    """The URL (libpq's) of the embedded database in `folder`; starts it if it is not running.

    UnreachableError with the reason when it cannot start, UsageError when the folder is unusable.
    """
    cluster = Cluster(folder, environ)
    if url := running_url(cluster):
        return url
    try:
        make_private(folder)
        with _turn_to_start(cluster):
            if url := running_url(cluster):
                return url
            logger.info("starting the embedded database in %s", folder)
            _start_supervisor(folder, environ)
            url = _await_url(cluster)
    except OSError as error:
        if error.filename == sys.executable:
            message = f"the embedded database cannot start: {path_problem(error)}"
            raise UsageError(message) from None
        message = (
            f"CUA_HOME: the embedded database cannot use {folder}:"
            f" {unusable_folder(folder, error)}; choose a folder that you can write to, or set"
            " DATABASE_URL to a PostgreSQL server"
        )
        raise (UnreachableError if error.errno in OUT_OF_SPACE else UsageError)(message) from None
    if url is None:
        message = f"the embedded database in {folder} does not answer; see {cluster.log_path}"
        raise UnreachableError(message)
    return url


@contextlib.contextmanager
def _turn_to_start(cluster: Cluster) -> Iterator[None]:
    """Wait until no other process starts the server, it runs, or the other one is stopped.

    Without the lock two supervisors may be started, of which one gets the supervisor's lock.
    """
    lock = FileLock(cluster.folder / supervisor.START_LOCK, mode=0o600)
    deadline = time.monotonic() + START_TURN_S
    while True:
        with contextlib.suppress(Timeout):
            lock.acquire(POLL_S)
            break
        if running_url(cluster) is not None:
            break
        if time.monotonic() > deadline:
            logger.warning(
                "%s has been held for %.0f s by %s; going on without it",
                *(lock.lock_file, START_TURN_S, file_lock_holder(Path(lock.lock_file))),
            )
            break
    try:
        yield
    finally:
        lock.release()


def _await_url(cluster: Cluster) -> str | None:
    """The URL of a server that was just started, perhaps by a faster process's supervisor."""
    deadline = time.monotonic() + START_TURN_S
    while (url := running_url(cluster)) is None and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return url


def stop_running(folder: Path) -> bool:
    """Stop the embedded database and wait until it has stopped; False when it was not running.

    UnreachableError when it does not stop in time; CuaProjectError when this user may not stop it.
    """
    if not folder.exists():
        return False
    lock = supervisor.supervisor_lock(folder)
    try:
        with FileLock(folder / supervisor.START_LOCK, mode=0o600).acquire(STOP_TIMEOUT_S):
            try:
                with lock.acquire(blocking=False):
                    return False
            except Timeout:
                pass
            # The lock is held, so the process id in it is its holder's.
            holder = int(Path(lock.lock_file).read_text(encoding="utf-8"))
            os.kill(holder, signal.SIGTERM)
            os.kill(holder, signal.SIGCONT)  # a stopped one would not hear it
            with lock.acquire(STOP_TIMEOUT_S, poll_interval=0.02):
                return True
    except Timeout:
        message = f"the embedded database in {folder} has not stopped within {STOP_TIMEOUT_S:.0f} s"
        raise UnreachableError(message) from None
    except OSError as error:
        message = f"cannot stop the embedded database in {folder}: {error.strerror or error}"
        raise CuaProjectError(message) from None


def running_url(cluster: Cluster) -> str | None:
    """The URL if our server runs; None otherwise.

    The server must accept our password and serve our data: a copied folder has the password and the
    port of the installation that it was copied from, whose server may be running.
    """
    state = cluster.folder / supervisor.STATE_FILE
    try:
        url = cluster.url(int(json.loads(state.read_text())["port"]))
        os.utime(state)  # a use: the supervisor counts idle time from here
    except (OSError, ValueError, KeyError):
        return None
    # A foreign server on the port could ask for the password in plain text. libpq can refuse that
    # since version 16.
    strict = (
        {"require_auth": "scram-sha-256"} if psycopg2.extensions.libpq_version() >= LIBPQ_16 else {}
    )
    try:
        with (
            contextlib.closing(connect(url, connect_timeout=5, **strict)) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SHOW data_directory")
            row = cursor.fetchone()
    except psycopg2.OperationalError:
        return None
    assert row is not None  # noqa: S101  # SHOW has one row
    # The server's text is UTF-8; what Python takes for a path depends on the locale.
    served = Path(os.fsdecode(row[0].encode()))
    return url if _is_same_folder(served, cluster.data) else None


def _is_same_folder(served: Path, ours: Path) -> bool:
    """Whether a server of `served` is the server of `ours`; True if ours was moved while it ran."""
    try:
        return served.samefile(ours)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _start_supervisor(folder: Path, environ: Mapping[str, str]) -> None:
    idle_s = environ.get("CUA_DATABASE_IDLE_S") or str(IDLE_S)
    log_path = folder / "supervisor.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", supervisor.__name__, str(folder), idle_s],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            # -m finds the package there, whatever the caller's working folder is.
            cwd=Path(consumers.__file__).parents[1],
            env=dict(environ),
            start_new_session=True,
        )
    assert process.stdout is not None  # noqa: S101  # it is a pipe
    with process.stdout:
        answer = process.stdout.readline().strip()
    process.returncode = 0  # detached on purpose; Popen would warn that it still runs
    if answer != supervisor.READY:
        reason = answer or f"its supervisor crashed, see {log_path}"
        message = f"the embedded database in {folder} did not start: {reason}"
        raise UnreachableError(message)
