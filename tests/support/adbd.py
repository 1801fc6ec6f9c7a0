"""A phone's own end of adb: what the real adb server connects to over TCP, with a simulated phone.

The messages are those of adb's transport protocol: a header of six numbers and data; each WRTE
waits for its OKAY.
"""

import socketserver
import struct
import threading
from typing import Any

from tests.support.adb_server import SimulatedPhone, shell_packets

CNXN, OPEN, OKAY, CLSE, WRTE = (
    int.from_bytes(name, "little") for name in (b"CNXN", b"OPEN", b"OKAY", b"CLSE", b"WRTE")
)
VERSION = 0x01000001
MOST_DATA = 4096
HEADER = struct.Struct("<6I")
BANNER = b"device::ro.product.name=sim;ro.product.model=Sim;ro.product.device=sim;features=shell_v2"


class _Connection(socketserver.BaseRequestHandler):
    server: "SimulatedAdbd"

    def handle(self) -> None:
        self.server.connections.append(self.request)
        while (message := self._read()) is not None:
            command, their_id, _, data = message
            if command == CNXN:
                self._send(CNXN, VERSION, MOST_DATA, BANNER)
            elif command == OPEN:
                self._service(their_id, data.rstrip(b"\0").decode())

    def _service(self, their_id: int, asked: str) -> None:
        kind, _, command = asked.partition(":")
        answer = self.server.phone.run(command) if kind.startswith("shell") else None
        if answer is None:
            self._send(CLSE, 0, their_id)
            return
        self._send(OKAY, 1, their_id)
        data = shell_packets(answer)
        for start in range(0, len(data), MOST_DATA):
            self._send(WRTE, 1, their_id, data[start : start + MOST_DATA])
            while (message := self._read()) is not None and message[0] != OKAY:
                if message[0] == CLSE:
                    return
        self._send(CLSE, 1, their_id)

    def _send(self, command: int, first: int, second: int, data: bytes = b"") -> None:
        header = HEADER.pack(
            command, first, second, len(data), sum(data) & 0xFFFFFFFF, command ^ 0xFFFFFFFF
        )
        self.request.sendall(header + data)

    def _read(self) -> tuple[int, int, int, bytes] | None:
        header = self._exactly(HEADER.size)
        if header is None:
            return None
        command, first, second, length, _, _ = HEADER.unpack(header)
        data = self._exactly(length)
        return None if data is None else (command, first, second, data)

    def _exactly(self, number: int) -> bytes | None:
        data = b""
        while len(data) < number:
            chunk = self.request.recv(number - len(data))
            if not chunk:
                return None
            data += chunk
        return data


class SimulatedAdbd(socketserver.ThreadingTCPServer):
    """Serves from its making on; `close` is a phone that is switched off."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.serial = f"127.0.0.1:{self.server_address[1]}"
        self.phone = SimulatedPhone(self.serial)
        self.connections: list[Any] = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A server that has gone is no error."""

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        for connection in self.connections:
            connection.close()
