"""An adb server: the phones that it knows, and running commands in their shells.

Every call has a time limit. Never starts a server, which the client library would do on this
machine when no server answers.
"""

import socket
from contextlib import closing
from dataclasses import dataclass
from math import inf

from adbutils import AdbClient, AdbConnection, AdbDevice
from adbutils.errors import AdbError

from producer.environments.environment import EnvironmentFailedError

LIMIT_S = 30.0
"""A phone that sends nothing for this long has failed."""
CONNECT_S = 5.0
"""Time limit for connecting to the server itself."""
READY = "device"
"""State of a phone that accepts commands."""
STATES = {
    "unauthorized": "is not authorised: confirm this computer on its screen",
    "offline": "is offline: connect it again",
}
ERRORS = (AdbError, OSError, EOFError, ValueError)
"""What the client library raises when a server or a phone fails."""


class NoServerError(EnvironmentFailedError):
    """No adb server answers."""


@dataclass(frozen=True, slots=True)
class Printed:
    """The result of a command."""

    status: int
    """Exit status."""
    stdout: bytes
    text: str
    """Combined stdout and stderr."""


class _Connection(AdbConnection):  # type: ignore[misc]  # ships no types
    def __init__(self, host: str, port: int, limit_s: float) -> None:
        self._opened = socket.create_connection((host, port), min(CONNECT_S, limit_s))
        self._opened.settimeout(limit_s)
        super().__init__(host, port)

    def _safe_connect(self) -> socket.socket:
        return self._opened


class _Client(AdbClient):  # type: ignore[misc]  # ships no types
    """A client for one call.

    Closes the connections that the library leaves open when a phone fails.
    """

    def __init__(self, host: str, port: int, limit_s: float) -> None:
        super().__init__(host, port)
        self._limit_s = limit_s
        self._opened: list[AdbConnection] = []

    def make_connection(self, timeout: float | None = None) -> AdbConnection:
        connection = _Connection(self.host, self.port, min(timeout or inf, self._limit_s))
        self._opened.append(connection)
        return connection

    def close(self) -> None:
        for connection in self._opened:
            connection.close()


class AdbServer:
    """The server at `HOST:PORT`. Thread-safe: each call opens its own connection."""

    def __init__(self, address: str, limit_s: float = LIMIT_S) -> None:
        self.address = address
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._limit_s = limit_s

    def states(self) -> dict[str, str]:
        """Map the serial of every phone that the server knows to its state.

        Raises NoServerError.
        """
        try:
            with self._client() as client:
                return {found.serial: found.state for found in client.list()}
        except ERRORS as error:
            message = f"no adb server answers at {self.address}: {error}"
            raise NoServerError(message) from error

    def has_shell(self, serial: str) -> bool:
        """Whether the phone's shell reports the exit status separately from the output.

        Android 7 and later do. Raises EnvironmentFailedError.
        """
        try:
            with self._client() as client:
                return "shell_v2" in AdbDevice(client, serial).get_features().split(",")
        except ERRORS as error:
            raise self._failed(serial, "its features", error) from error

    def run(self, serial: str, command: str) -> Printed:
        """Run a command in the phone's shell. Raises EnvironmentFailedError."""
        try:
            with self._client() as client:
                phone = AdbDevice(client, serial)
                done = phone.shell2(command, timeout=self._limit_s, encoding=None, v2=True)
        except ERRORS as error:
            raise self._failed(serial, repr(command), error) from error
        return Printed(done.returncode, done.stdout, done.output.decode(errors="replace"))

    def _client(self) -> "closing[_Client]":
        return closing(_Client(self._host, self._port, self._limit_s))

    def _failed(self, serial: str, asked: str, error: Exception) -> EnvironmentFailedError:
        return EnvironmentFailedError(f"phone {serial} did not answer {asked}: {error}")


def describe(serial: str, state: str | None) -> str:
    """Describe a phone's state for people. None means that the server does not know the phone."""
    if state is None:
        return f"phone {serial} is not connected"
    return f"phone {serial} {STATES.get(state, f'is in state {state}')}"
