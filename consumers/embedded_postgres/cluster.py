"""One PostgreSQL cluster in a folder of its own.

Made once, started as a child process, reached with a password on loopback.

Knows nothing of idle times or of who keeps it (`postgres_keeper`). Layout of the folder: `data`
(the cluster, its server's user's alone), `run` (its socket), `password`, `postgres.log`,
`server.lock`.
"""

import contextlib
import fcntl
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import quote

import psycopg2

from consumers.embedded_postgres import unprivileged
from consumers.embedded_postgres.binaries import Binaries, find_binaries
from consumers.errors import UnreachableError

USER = DATABASE = "cua"
SOCKET_PATH_LIMIT = 107
"""Bytes that a Unix socket's path may have (sun_path), its last NUL not counted."""
LOG_LIMIT_BYTES = 4 * 1024 * 1024
SETTINGS: Mapping[str, str] = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "60",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "jit": "off",  # compiling costs more than it saves for queries of milliseconds
    "unix_socket_permissions": "0700",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster in `folder`. Its methods are for the one process that holds its locks.

    `url` is for everyone.
    """

    folder: Path
    environ: Mapping[str, str]
    """Where programs are looked for (PATH)."""

    @property
    def data(self) -> Path:
        """PostgreSQL's own folder."""
        return self.folder / "data"

    @property
    def log_path(self) -> Path:
        """What the server says."""
        return self.folder / "postgres.log"

    def url(self, port: int, database: str = DATABASE) -> str:
        """The URL as libpq reads it, password included."""
        password = quote((self.folder / "password").read_text().strip(), safe="")
        return f"postgresql://{USER}:{password}@127.0.0.1:{port}/{database}"

    def initialise(self) -> None:
        """Make the cluster unless there is one; a half-made one of a killed process is made again.

        UnreachableError.
        """
        make_private(self.folder)
        if (self.data / "PG_VERSION").exists():
            return
        password = self.folder / "password"
        if not password.exists():
            write_private(password, secrets.token_urlsafe(24))
        uid = os.geteuid() or pwd.getpwnam("nobody").pw_uid
        unfinished, told = self.folder / "data.unfinished", self.folder / "password.initdb"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        write_private(told, password.read_text())
        for path in (unfinished, told):
            os.chown(path, uid, -1)
        binaries = find_binaries(self.environ)
        # No locale of the machine: text then sorts the same everywhere, and a locale that is
        # missing cannot fail it.
        arguments = [
            "-D",
            str(unfinished),
            "-U",
            USER,
            "-A",
            "scram-sha-256",
            "--pwfile",
            str(told),
            "-E",
            "UTF8",
            "--no-locale",
        ]
        done = self._launch(binaries, "initdb", arguments, uid, output=subprocess.PIPE)
        output = done.communicate()[0]
        told.unlink()
        if done.returncode:
            message = (
                f"expected initdb to make a database in {self.folder}, found exit"
                f" {done.returncode}: {output.decode().strip()}; "
            )
            message += "set DATABASE_URL to a server of yours if this cannot be mended"
            raise UnreachableError(message)
        unfinished.rename(self.data)

    @contextlib.contextmanager
    def alone(self, timeout_s: float) -> Iterator[int]:
        """Wait until no process of an earlier server lives, and yield the lock that proves it, to be inherited by the next.

        Every process of a server inherits the lock's descriptor, so it is free only when the last of them is gone: no process id has
        to be trusted. A `postmaster.pid` that is left then is stale, whoever has that id now. UnreachableError on timeout.
        """
        lock = os.open(self.folder / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + timeout_s
            while not try_lock(lock):
                if time.monotonic() > deadline:
                    message = (
                        f"an earlier PostgreSQL in {self.data} has not ended within {timeout_s:.0f}"
                        f" s; see {self.log_path}"
                    )
                    raise UnreachableError(message)
                time.sleep(0.02)
            (self.data / "postmaster.pid").unlink(missing_ok=True)
            yield lock
        finally:
            os.close(lock)

    def start(self, port: int, lock: int, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """A server on this port; it ends with the calling thread.

        It may not answer yet (`wait_ready`).
        """
        owner = self.data.stat().st_uid
        binaries = find_binaries(self.environ, int((self.data / "PG_VERSION").read_text()))
        run = self.folder / "run"
        if len(bytes(run / f".s.PGSQL.{port}.lock")) <= SOCKET_PATH_LIMIT:
            run.mkdir(mode=0o700, exist_ok=True)
            os.chown(run, owner, -1)
            socket_folder = str(run)
        else:
            socket_folder = ""  # too long for a socket: loopback alone
        arguments = ["-D", str(self.data), "-p", str(port), "-k", socket_folder]
        for name, value in {**SETTINGS, **settings}.items():
            arguments += ["-c", f"{name}={value}"]
        if not self.log_path.exists() or self.log_path.stat().st_size > LOG_LIMIT_BYTES:
            write_private(self.log_path, "")
        with self.log_path.open("ab") as log:
            return self._launch(
                binaries, "postgres", arguments, owner, output=log, pass_fds=(lock,)
            )

    def wait_ready(self, server: subprocess.Popen[bytes], port: int, timeout_s: float) -> None:
        """Return once the server answers and has our database.

        UnreachableError: it ended or stays silent.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                connection = psycopg2.connect(self.url(port, "postgres"), connect_timeout=5)
                break
            except psycopg2.OperationalError as error:
                if server.poll() is not None or time.monotonic() > deadline:
                    message = (
                        f"expected PostgreSQL to answer on port {port}, found:"
                        f" {self._last_words() or error}"
                    )
                    raise UnreachableError(message) from None
                time.sleep(0.02)
        with contextlib.closing(connection), connection.cursor() as cursor:
            connection.autocommit = True
            cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,))
            if cursor.fetchone() is None:
                cursor.execute(f"CREATE DATABASE {DATABASE}")

    def _last_words(self) -> str:
        if not self.log_path.exists():
            return ""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-5:])

    def _launch(
        self,
        binaries: Binaries,
        program: str,
        arguments: list[str],
        uid: int,
        *,
        output: int | IO[bytes],
        pass_fds: tuple[int, ...] = (),
    ) -> subprocess.Popen[bytes]:
        launcher = [
            sys.executable,
            "-I",
            unprivileged.__file__,
            str(os.getpid()),
            str(uid),
            str(binaries.folder / program),
        ]
        # The caller's PG* and locale variables are not the server's business.
        environ = {"PATH": self.environ.get("PATH", os.defpath), "LC_ALL": "C"}
        return subprocess.Popen(
            [*launcher, *arguments],
            stdin=subprocess.DEVNULL,
            env=environ,
            cwd="/",
            pass_fds=pass_fds,
            start_new_session=True,  # Ctrl-C in the terminal is for the keeper to answer
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def stop(server: subprocess.Popen[bytes], timeout_s: float = 20) -> None:
    """End a server: cut its clients off and leave the data clean; harder when that takes too long.

    Twice is once.
    """
    for wish in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        if server.poll() is not None:
            return
        server.send_signal(wish)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(timeout_s)


def try_lock(descriptor: int) -> bool:
    """Take an open file's lock if nobody has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def make_private(folder: Path) -> None:
    """Our own folder, made if missing; the folders above it keep their modes.

    Root's is open to pass through (its server is another user, whose `data` lies in it) and still
    cannot be listed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700 if os.geteuid() else 0o711)


def write_private(path: Path, text: str) -> None:
    """Replace a file as a whole, readable by its owner alone."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    unfinished.replace(path)
