"""A MySQL or MariaDB server: its URL, and the administrator that creates and drops databases.

Names are `PREFIX_<owner>_<number>`. A process holds the server's lock `PREFIX_<owner>` as long as
it lives, so that any process on any machine can tell whose databases are left over.
"""

import contextlib
import re
import secrets
from collections.abc import Sequence
from threading import Lock
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from producer.errors import UsageError
from producer.sql_execution.database import DatabaseFailedError
from schemas.distribution import install_command

CONNECT_TIME_S: Final = 10
ADMIN_TIME_S: Final = 60
RIGHTS: Final = "SELECT, INSERT, UPDATE, DELETE"
DEFAULT_PORT: Final = 3306
DEFAULT_PREFIX: Final = "cua"
PREFIX: Final = re.compile(r"[a-z][a-z0-9]{0,15}")


class ServerUrl(NamedTuple):
    """`mysql://USER:PASSWORD@HOST:PORT/PREFIX`."""

    host: str
    port: int
    user: str
    password: str
    prefix: str = DEFAULT_PREFIX
    """Prefix of the names of sessions' databases and users."""

    @property
    def redacted(self) -> str:
        """The URL without the password."""
        return f"mysql://{self.user}@{self.host}:{self.port}"


def parse_server_url(url: str) -> ServerUrl:
    """Parse the URL. Raises ValueError for an invalid one."""
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORT
    except ValueError as error:
        message = f"it is no URL: {error}"
        raise ValueError(message) from error
    if parts.scheme not in {"mysql", "mariadb"} or not parts.hostname or not parts.username:
        message = "a server's URL is mysql://USER@HOST:PORT"
        raise ValueError(message)
    prefix = parts.path.strip("/") or DEFAULT_PREFIX
    if not PREFIX.fullmatch(prefix) or parts.query or parts.fragment:
        message = (
            f"{prefix!r} cannot begin the names of the sessions' databases; use at most 16 small"
            " letters and digits"
        )
        raise ValueError(message)
    user, password = unquote(parts.username), unquote(parts.password or "")
    return ServerUrl(parts.hostname, port, user, password, prefix)


class Access(NamedTuple):
    """A session's database, and the user that has rights on it alone."""

    name: str
    password: str


def connect(url: ServerUrl, user: str, password: str, database: str | None, time_s: float) -> Any:  # noqa: ANN401  # pymysql ships no types
    """Open a pymysql connection. Raises DatabaseFailedError."""
    try:
        import pymysql
    except ImportError as error:
        message = f"MySQL and MariaDB need pymysql; run {install_command('mysql')}"
        raise UsageError(message) from error
    try:
        return pymysql.connect(
            host=url.host,
            port=url.port,
            user=user,
            password=password,
            database=database,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=CONNECT_TIME_S,
            read_timeout=time_s,
            write_timeout=time_s,
            local_infile=False,
        )
    except (pymysql.MySQLError, OSError) as error:
        message = f"the database server {url.redacted} cannot be reached: {error}"
        raise DatabaseFailedError(message) from error


class Administrator:
    """One process's administrator of one server. Thread-safe."""

    def __init__(self, url: ServerUrl) -> None:
        """Connect, and drop what dead processes left over. Raises DatabaseFailedError."""
        self.url = url
        self._lock_name = f"{url.prefix}_{secrets.token_hex(6)}"
        self._lock = Lock()
        self._number = 0
        self._connection: Any = None
        with self._lock:
            self._connect()
            self._drop_debris()

    def create(self) -> Access:
        """Create a database and its user. Raises DatabaseFailedError."""
        with self._lock:
            self._number += 1
            access = Access(f"{self._lock_name}_{self._number}", secrets.token_hex(16))
            name, password = access
            for statement in (
                f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
                f"CREATE USER {name}@'%' IDENTIFIED BY '{password}'",
                f"GRANT {RIGHTS} ON {name}.* TO {name}@'%'",
            ):
                self._execute(statement)
        return access

    def drop(self, access: Access) -> None:
        """Drop the database and its user, and end its connections. Raises DatabaseFailedError."""
        with self._lock:
            self._drop(access.name)

    def end_statements(self, access: Access) -> None:
        """Kill the user's connections and their statements. Raises DatabaseFailedError."""
        with self._lock:
            self._end_connections(access.name)

    def run(self, name: str, statement: str, rows: Sequence[Sequence[object]] | None = None) -> Any:  # noqa: ANN401
        """Execute a trusted statement in a session's database and return its rows.

        Raises DatabaseFailedError.
        """
        with self._lock:
            self._execute(f"USE {name}")
            return self._execute(statement, rows)

    def close(self) -> None:
        """Release the server's lock. Idempotent."""
        with self._lock, contextlib.suppress(Exception):
            self._connection.close()

    def _connect(self) -> None:
        self._connection = connect(self.url, self.url.user, self.url.password, None, ADMIN_TIME_S)
        with self._connection.cursor() as cursor:
            cursor.execute("SET SESSION wait_timeout = 2147483")
            cursor.execute("SET SESSION group_concat_max_len = 1048576")
            cursor.execute("SELECT GET_LOCK(%s, 0)", (self._lock_name,))

    def _execute(self, statement: str, rows: Sequence[Sequence[object]] | None = None) -> Any:  # noqa: ANN401
        import pymysql

        try:
            if not self._connection.open:
                self._connect()
            with self._connection.cursor() as cursor:
                if rows is None:
                    cursor.execute(statement)
                else:
                    cursor.executemany(statement, rows)
                return cursor.fetchall()
        except (pymysql.MySQLError, OSError) as error:
            message = f"the database server {self.url.redacted} failed: {error}"
            raise DatabaseFailedError(message) from error

    def _drop_debris(self) -> None:
        """Drop databases and users of processes whose lock is free."""
        pattern = re.compile(rf"({self.url.prefix}_[0-9a-f]{{12}})_[0-9]+")
        like = f"{self.url.prefix}\\\\_%"
        listed = self._execute(f"SHOW DATABASES LIKE '{like}'")
        users = self._execute(f"SELECT User FROM mysql.user WHERE User LIKE '{like}'")
        for name in sorted({str(row[0]) for row in (*listed, *users)}):
            match = pattern.fullmatch(name)
            if match is None:
                continue
            ((is_free,),) = self._execute(f"SELECT IS_FREE_LOCK('{match[1]}')")
            if is_free:
                self._drop(name)

    def _drop(self, name: str) -> None:
        self._end_connections(name)
        self._execute(f"DROP DATABASE IF EXISTS {name}")
        self._execute(f"DROP USER IF EXISTS {name}@'%'")

    def _end_connections(self, name: str) -> None:
        found = self._execute(
            f"SELECT id FROM information_schema.processlist WHERE user = '{name}'"
        )
        for (identity,) in found:
            # The connection may have ended by itself in the meantime.
            with contextlib.suppress(DatabaseFailedError):
                self._execute(f"KILL {int(identity)}")


_administrators: dict[ServerUrl, Administrator] = {}
_administrators_lock = Lock()


def administrator(url: ServerUrl) -> Administrator:
    """This process's administrator of the server. Raises DatabaseFailedError."""
    with _administrators_lock:
        if url not in _administrators:
            _administrators[url] = Administrator(url)
        return _administrators[url]
