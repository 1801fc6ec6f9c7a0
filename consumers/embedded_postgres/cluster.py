"""One PostgreSQL cluster: initialised once, started as a child process, on loopback only.

Layout of its folder: `data` (the cluster, readable by its server's user alone), `run` (the
socket), `password`, `postgres.log`, `server.lock`.
"""

import contextlib
import fcntl
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import quote

import psycopg2

from consumers.embedded_postgres.binaries import Binaries, find_binaries
from consumers.embedded_postgres.connection import connect, mark_as_own
from consumers.embedded_postgres.unprivileged import unprivileged
from consumers.errors import UnreachableError

USER = DATABASE = "cua"
SOCKET_PATH_LIMIT = 107
"""Longest path of a Unix socket in bytes (sun_path), without its final NUL."""
PASSING = ("starting up", "shutting down", "recovery mode", "not accepting", "not yet accepting")
"""In the refusal of a server that has not finished starting."""
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
    """The cluster in `folder`. Any process may call `url`; the rest needs the supervisor's lock."""

    folder: Path
    environ: Mapping[str, str]
    """Provides PATH, to find the programs."""

    @property
    def data(self) -> Path:
        """PostgreSQL's own folder."""
        return self.folder / "data"

    @property
    def pid_path(self) -> Path:
        """PostgreSQL's own; its first line is the server's process."""
        return self.data / "postmaster.pid"

    @property
    def log_path(self) -> Path:
        """The server's own log."""
        return self.folder / "postgres.log"

    def url(self, port: int, database: str = DATABASE) -> str:
        """The URL as libpq reads it, password included."""
        password = quote((self.folder / "password").read_text().strip(), safe="")
        return mark_as_own(f"postgresql://{USER}:{password}@127.0.0.1:{port}/{database}")

    def initialise(self) -> None:
        """Create the cluster if it does not exist. UnreachableError.

        What a killed process left unfinished is deleted and created again.
        """
        make_private(self.folder)
        if (self.data / "PG_VERSION").exists():
            return
        password = self.folder / "password"
        if not password.exists():
            write_private(password, secrets.token_urlsafe(24))
        uid = os.geteuid() or pwd.getpwnam("nobody").pw_uid
        unfinished, password_file = self.folder / "data.unfinished", self.folder / "password.initdb"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        write_private(password_file, password.read_text())
        for path in (unfinished, password_file):
            os.chown(path, uid, -1)
        binaries = find_binaries(self.environ)
        # Without a locale, text sorts the same on every machine, and initdb cannot fail because
        # the environment's locale is not installed.
        arguments = [
            "-D",
            str(unfinished),
            "-U",
            USER,
            "-A",
            "scram-sha-256",
            "--pwfile",
            str(password_file),
            "-E",
            "UTF8",
            "--no-locale",
        ]
        done = self._launch(binaries, "initdb", arguments, uid, output=subprocess.PIPE)
        output = done.communicate()[0]
        password_file.unlink()
        if done.returncode:
            message = (
                f"initdb failed in {self.folder} (exit {done.returncode}):"
                f" {_reason(output.decode(errors='replace'))}; fix this, or set DATABASE_URL to a"
                " server of yours"
            )
            raise UnreachableError(message)
        unfinished.rename(self.data)

    @contextlib.contextmanager
    def alone(self, timeout_s: float) -> Iterator[int]:
        """Wait until no process of an earlier server is alive; yield the lock for the next server.

        Every process of a server inherits the lock's descriptor, so the lock is free only once the
        last of them has exited. A `postmaster.pid` that remains is then stale, even if another
        process has its id now. UnreachableError on timeout.
        """
        # flock by hand: filelock's descriptors cannot be inherited by a child process.
        lock = os.open(self.folder / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + timeout_s
            while not try_lock(lock):
                if time.monotonic() > deadline:
                    message = (
                        f"an earlier PostgreSQL in {self.data} has not stopped within"
                        f" {timeout_s:.0f} s; see {self.log_path}"
                    )
                    raise UnreachableError(message)
                time.sleep(0.02)
            self.pid_path.unlink(missing_ok=True)
            yield lock
        finally:
            os.close(lock)

    def start(self, port: int, lock: int, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start a server on this port; `wait_ready` tells when it accepts connections.

        It stops when the calling thread ends (PR_SET_PDEATHSIG).
        """
        owner = self.data.stat().st_uid
        if owner == 0:
            message = (
                f"{self.data} belongs to root, but PostgreSQL does not run as root; run"
                f" `chown -R nobody {self.data}`, or delete the folder and run `cua-project run`"
                " (a copy by `cp -a` keeps the owner)"
            )
            raise UnreachableError(message)
        binaries = find_binaries(self.environ, int((self.data / "PG_VERSION").read_text()))
        run = self.folder / "run"
        if len(bytes(run / f".s.PGSQL.{port}.lock")) <= SOCKET_PATH_LIMIT:
            run.mkdir(mode=0o700, exist_ok=True)
            os.chown(run, owner, -1)
            socket_folder = str(run)
        else:
            socket_folder = ""  # the path is too long for a socket: TCP on loopback only
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
        """Return once the server accepts connections and has our database.

        UnreachableError when it exits, refuses us or does not answer in time.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                connection = connect(self.url(port, "postgres"), connect_timeout=5)
                break
            except psycopg2.OperationalError as error:
                if server.poll() is not None:
                    reason = f"it has exited: {self._end_of_log() or _one_line(error)}"
                elif time.monotonic() > deadline or _is_refusal(error):
                    reason = f"{_one_line(error)} (its own log: {self.log_path})"
                else:
                    time.sleep(0.02)
                    continue
                message = f"PostgreSQL does not answer on port {port}: {reason}"
                raise UnreachableError(message) from None
        with contextlib.closing(connection), connection.cursor() as cursor:
            connection.autocommit = True
            cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,))
            if cursor.fetchone() is None:
                cursor.execute(f"CREATE DATABASE {DATABASE}")

    def _end_of_log(self) -> str:
        """The log's last lines as one: the supervisor reports in a single line."""
        if not self.log_path.exists():
            return ""
        return " / ".join(self.log_path.read_text(errors="replace").splitlines()[-5:])

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
        # Without the caller's PG* and locale variables, which would change the server's behaviour.
        environ = {"PATH": self.environ.get("PATH", os.defpath), "LC_ALL": "C"}
        return subprocess.Popen(
            unprivileged(binaries.folder / program, arguments, uid),
            umask=0o077,
            stdin=subprocess.DEVNULL,
            env=environ,
            cwd="/",
            pass_fds=pass_fds,
            start_new_session=True,  # Ctrl-C in a terminal must not reach the server
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def _one_line(error: psycopg2.Error) -> str:
    return " / ".join(line.strip() for line in str(error).strip().splitlines())


def _is_refusal(error: psycopg2.OperationalError) -> bool:
    """Whether a server answered, and will not answer otherwise when it has started."""
    text = str(error)
    return "FATAL:" in text and not any(words in text for words in PASSING)


def stop(server: subprocess.Popen[bytes], timeout_s: float = 20) -> None:
    """Stop a server by a fast shutdown; escalate each `timeout_s`. Idempotent."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        if server.poll() is not None:
            return
        server.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(timeout_s)


def try_lock(descriptor: int) -> bool:
    """Lock an open file; False when another process holds its lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def make_private(folder: Path) -> None:
    """Create our folder if it is missing. Folders above it keep their modes.

    As root it can be passed through but not listed: the server runs as another user, and its
    `data` is inside.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700 if os.geteuid() else 0o711)


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically; only its owner can read it."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    unfinished.replace(path)


def _reason(printed: str) -> str:
    """The line of initdb's that says why it failed; all of them if none does."""
    lines = [line.strip() for line in printed.strip().splitlines()]
    return next((line for line in lines if "FATAL:" in line or "error:" in line), " ".join(lines))
