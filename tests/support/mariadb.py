"""A real MariaDB for tests: Debian's package, unpacked beside the developer's own, without Docker.

apt downloads it once, into CUA_TEST_CACHE (9 MB).
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.missing import skip_or_fail
from tests.support.ports import free_port

PACKAGES = (
    "mariadb-server-core",
    "mariadb-common",
    "libaio1",
    "libnuma1",
    "liburing2",
    "libpcre2-8-0",
)
START_TIMEOUT_S = 60.0
SETTINGS = (
    "--skip-networking=0",
    "--bind-address=127.0.0.1",
    "--skip-log-bin",
    "--skip-name-resolve",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=8M",
    "--innodb-flush-method=nosync",
    "--innodb-file-per-table=0",
    "--performance-schema=off",
    "--plugin-maturity=unknown",
)
"""Nothing of a test server has to survive a power cut."""
ROOT_PASSWORD = "of-the-tests"  # noqa: S105  # of a server on loopback that ends with the tests


class UnavailableError(Exception):
    """The package cannot be had here."""


def mariadb_folder() -> Path:
    """Where the package is unpacked. UnavailableError."""
    cache = Path(os.environ.get("CUA_TEST_CACHE") or Path.home() / ".cache" / "cua-train-tests")
    folder = cache / "mariadb"
    if (folder / "usr" / "sbin" / "mariadbd").exists():
        return folder
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        message = "MariaDB cannot be unpacked: it comes from Debian's packages"
        raise UnavailableError(message)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as work:
        root = Path(work) / "root"
        if not _download(Path(work)):
            subprocess.run(["apt-get", "update"], check=False, capture_output=True)
            if not _download(Path(work)):
                message = f"apt-get download {' '.join(PACKAGES)} failed"
                raise UnavailableError(message)
        for package in sorted(Path(work).glob("*.deb")):
            subprocess.run(["dpkg", "-x", package, root], check=True)
        # Atomic: an interrupted download must not look complete. Another process may be first.
        with contextlib.suppress(OSError):
            root.rename(folder)
    return folder


def _download(folder: Path) -> bool:
    done = subprocess.run(
        ["apt-get", "download", *PACKAGES],
        cwd=folder,
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode == 0


class MariaDbServer:
    """One server in a temporary folder, on a free port, as a context manager."""

    def __init__(self) -> None:
        """UnavailableError."""
        self._root = mariadb_folder()
        # Each session makes and drops a table, which costs 0.1 s on a disk.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
        self._folder = Path(tempfile.mkdtemp(prefix="cua-mariadb-", dir=memory))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """With the rights of its administrator."""
        return f"mysql://root:{ROOT_PASSWORD}@127.0.0.1:{self.port}"

    def _program(self, *arguments: str) -> list[str]:
        share = self._root / "usr" / "share" / "mysql"
        return [
            str(self._root / "usr" / "sbin" / "mariadbd"),
            "--no-defaults",
            f"--datadir={self._folder / 'data'}",
            f"--lc-messages-dir={share}",
            f"--character-sets-dir={share / 'charsets'}",
            f"--plugin-dir={self._root / 'usr' / 'lib' / 'mysql' / 'plugin'}",
            *(["--user=root"] if os.geteuid() == 0 else []),
            *arguments,
        ]

    @property
    def _environment(self) -> dict[str, str]:
        libraries = sorted({str(path.parent) for path in self._root.rglob("*.so.*")})
        return {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}

    def _initialise(self) -> None:
        (self._folder / "data" / "mysql").mkdir(parents=True)
        share = self._root / "usr" / "share" / "mysql"
        names = ("mysql_system_tables", "mysql_performance_tables", "mysql_system_tables_data")
        scripts = "\n".join((share / f"{name}.sql").read_text("utf-8") for name in names)
        script = (
            f"CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\n{scripts}\n"
            f"DELETE FROM mysql.global_priv WHERE User = '';\nFLUSH PRIVILEGES;\n"
            f"CREATE OR REPLACE USER root@'127.0.0.1' IDENTIFIED BY '{ROOT_PASSWORD}';\n"
            "GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"
        )
        done = subprocess.run(
            self._program("--bootstrap", "--skip-networking", "--log-warnings=0"),
            input=script.encode(),
            env=self._environment,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            message = (
                f"MariaDB cannot be initialised:\n{done.stderr.decode(errors='replace')[-2000:]}"
            )
            raise RuntimeError(message)

    def start(self) -> None:
        """Returns once it takes connections."""
        self._initialise()
        with (self._folder / "mariadb.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._program(
                    f"--port={self.port}", f"--socket={self._folder / 'socket'}", *SETTINGS
                ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
            )
        import pymysql

        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(pymysql.err.OperationalError):
                pymysql.connect(
                    host="127.0.0.1", port=self.port, user="root", password=ROOT_PASSWORD
                ).close()
                return
            time.sleep(0.1)
        tail = (self._folder / "mariadb.log").read_text(errors="replace")[-2000:]
        message = f"MariaDB did not start within {START_TIMEOUT_S} s:\n{tail}"
        raise RuntimeError(message)

    def close(self) -> None:
        """End the process and remove the folder. Idempotent."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(20)
            self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDbServer]:
    """The session's server; skipped where the package cannot be had, which fails in CI."""
    try:
        server = MariaDbServer()
    except UnavailableError as error:
        skip_or_fail(str(error))
    try:
        server.start()
        yield server
    finally:
        server.close()
