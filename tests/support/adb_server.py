"""An adb server on a free port with simulated phones, which speaks adb's host protocol.

`adb` itself and client libraries can talk to it. What a phone's `input` does is done to the
simulator.
"""

import io
import re
import shlex
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any

from PIL import Image

from producer.agents.android.sim.device import gestures, shell
from producer.agents.android.sim.device.sim import AndroidSim
from producer.environments.environment import ActionRefusedError
from producer.task import Task
from schemas.actions import (
    Action,
    Click,
    DoubleClick,
    Drag,
    KeyPress,
    LongPress,
    OpenApp,
    Swipe,
    SystemButton,
    Type,
)

NOTHING = Task("nothing", "Nothing", "Do nothing.", None, None, 1, None, None)
VERSION, FEATURES = 41, "shell_v2,cmd,stat_v2"
STDOUT, STDERR, EXIT = 1, 2, 3
KEYS: dict[str, Action] = {
    "3": SystemButton(button="home"),
    "KEYCODE_HOME": SystemButton(button="home"),
    "4": SystemButton(button="back"),
    "187": SystemButton(button="recents"),
    "26": SystemButton(button="power"),
    "24": SystemButton(button="volume_up"),
    "25": SystemButton(button="volume_down"),
    "66": KeyPress(keys=("enter",)),
    "67": KeyPress(keys=("backspace",)),
    "120": KeyPress(keys=("power", "volume_down")),
}
DOUBLE_TAP = re.compile(r"(input tap (\d+) (\d+)) & sleep 0\.1; \1; wait")
Answer = tuple[bytes, bytes, int]
"""Stdout, stderr, exit status."""


class SimulatedPhone:
    """A phone behind the server: a simulator that outlives the episodes."""

    def __init__(self, serial: str, seed: int = 1) -> None:
        self.serial = serial
        self.state = "device"
        self.failing = 0.0
        """Share of the commands at which the connection breaks."""
        self.hangs = threading.Event()
        """While set, commands are not answered."""
        self.goes_after: int | None = None
        """After so many commands it is offline."""
        self.commands: list[str] = []
        self.features = FEATURES
        self.is_turned = False
        """Lies on its side."""
        self.sim = AndroidSim()
        self.sim.start(NOTHING, seed)
        self._random = Random(serial)
        self._path: list[tuple[int, int]] = []
        self._lock = threading.Lock()

    def run(self, command: str) -> Answer | None:
        """None: the connection breaks."""
        with self._lock:
            self.commands.append(command)
            if self.goes_after is not None and len(self.commands) > self.goes_after:
                self.state = "offline"
            if self.state != "device" or self._random.random() < self.failing:
                return None
            return self._answer(command)

    def _answer(self, command: str) -> Answer:
        if (double := DOUBLE_TAP.fullmatch(command)) is not None:
            return self._perform(DoubleClick(x=int(double[2]), y=int(double[3])))
        for part in command.split(" && "):
            answer = self._one(part)
            if answer[2] != 0:
                break
        return answer

    def _one(self, command: str) -> Answer:
        words = shlex.split(command)
        match words:
            case ["screencap", "-p"]:
                picture = self.sim.picture()
                picture = (
                    picture.transpose(Image.Transpose.ROTATE_90) if self.is_turned else picture
                )
                return _as_a_phone_sends_it(picture), b"", 0
            case ["wm", "dismiss-keyguard"] | ["cmd", "statusbar", "collapse"]:
                return b"", b"", 0
            case ["input", "keyevent", "KEYCODE_WAKEUP"]:
                self.sim.phone.is_asleep = False
                return b"", b"", 0
            case ["am", "start", package]:
                return self._start(package)
            case ["input", *gesture]:
                return self._input(gesture)
            case _:
                printed = shell.run(self.sim.phone, command)
                text = printed.text.encode()
                return (text, b"", 0) if printed.status == 0 else (b"", text, printed.status)

    def _start(self, package: str) -> Answer:
        try:
            gestures.perform(self.sim.phone, OpenApp(package=package))
        except ActionRefusedError:
            return b"Error: Activity not started, unable to resolve Intent\n", b"", 1
        return f"Starting: Intent {{ pkg={package} }}\n".encode(), b"", 0

    def _input(self, words: list[str]) -> Answer:
        match words:
            case ["motionevent", "DOWN" | "MOVE", x, y]:
                self._path.append((int(x), int(y)))
                return b"", b"", 0
            case _:
                action = self._action(words)
        if action is None:
            return b"", f"Error: Unknown command: {' '.join(words)}\n".encode(), 255
        return self._perform(action)

    def _action(self, words: list[str]) -> Action | None:
        match words:
            case ["keyevent", key]:
                action = KEYS.get(key)
            case ["tap", x, y]:
                action = Click(x=int(x), y=int(y))
            case ["swipe", x, y, to_x, to_y, ms]:
                action = _stroke((int(x), int(y)), (int(to_x), int(to_y)), int(ms))
            case ["motionevent", "UP", *_]:
                path, self._path = tuple(self._path), []
                action = Drag(path=path)
            case ["text", text]:
                action = Type(text=text.replace("%s", " "))
            case _:
                action = None
        return action

    def _perform(self, action: Action) -> Answer:
        with suppress(ActionRefusedError):  # a phone ignores text without a focused field
            gestures.perform(self.sim.phone, action)
        return b"", b"", 0


def _stroke(start: tuple[int, int], end: tuple[int, int], ms: int) -> Action:
    if start == end:
        return LongPress(x=start[0], y=start[1])
    if ms >= 1000:
        return Drag(path=(start, end))
    return Swipe(x=start[0], y=start[1], to_x=end[0], to_y=end[1])


def _as_a_phone_sends_it(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.convert("RGBA").save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def shell_packets(answer: Answer) -> bytes:
    """Stdout, stderr and exit status, kept apart as the second version of the shell does."""
    stdout, stderr, status = answer
    parts = ((STDOUT, stdout), (STDERR, stderr), (EXIT, bytes([status])))
    return b"".join(struct.pack("<BI", number, len(data)) + data for number, data in parts if data)


class _Handler(socketserver.BaseRequestHandler):
    server: "FakeAdbServer"

    def handle(self) -> None:
        phone: SimulatedPhone | None = None
        while (asked := self._read()) is not None:
            if phone is not None:
                self._service(phone, asked)
                return
            phone = self._host(asked)
            if phone is None:
                return

    def _read(self) -> str | None:
        length = self._exactly(4)
        return None if length is None else (self._exactly(int(length, 16)) or b"").decode()

    def _exactly(self, number: int) -> bytes | None:
        data = b""
        while len(data) < number:
            chunk = self.request.recv(number - len(data))
            if not chunk:
                return None
            data += chunk
        return data

    def _host(self, asked: str) -> SimulatedPhone | None:
        """The phone that the connection leads to from now on."""
        self.server.asked.append(asked)
        phones = self.server.phones
        match asked.split(":", 1):
            case ["host", "version"]:
                self._block(f"{VERSION:04x}")
            case ["host", "devices" | "devices-l"]:
                lines = (f"{phone.serial}\t{phone.state}\n" for phone in phones.values())
                self._block("".join(lines))
            case ["host", service] if service.startswith(("tport:serial:", "transport:")):
                serial = service.removeprefix("tport:serial:").removeprefix("transport:")
                if (phone := self._ready(serial)) is not None:
                    self.request.sendall(b"OKAY")
                    if service.startswith("tport:"):
                        self.request.sendall(struct.pack("<Q", 1))
                    return phone
            case ["host-serial", rest]:
                serial, _, service = rest.rpartition(":")
                if (phone := self._ready(serial)) is not None:
                    self._block(phone.features if service == "features" else phone.state)
            case ["host", "features"]:
                self._block(FEATURES)
            case _:
                self._fail(f"unknown host service {asked!r}")
        return None

    def _ready(self, serial: str) -> SimulatedPhone | None:
        phone = self.server.phones.get(serial)
        if phone is None:
            self._fail(f"device '{serial}' not found")
        elif phone.state != "device":
            self._fail(f"device {phone.state}")
            return None
        return phone

    def _service(self, phone: SimulatedPhone, asked: str) -> None:
        kind, _, command = asked.partition(":")
        if kind.partition(",")[0] not in {"shell", "exec"}:
            self._fail(f"unknown service {asked!r}")
            return
        if phone.hangs.is_set():
            self.server.stopping.wait()
            return
        answer = phone.run(command)
        if answer is None:
            return
        is_packed = kind.startswith("shell,v2")
        self.request.sendall(
            b"OKAY" + (shell_packets(answer) if is_packed else answer[0] + answer[1])
        )

    def _block(self, text: str) -> None:
        self.request.sendall(f"OKAY{len(text):04x}{text}".encode())

    def _fail(self, message: str) -> None:
        self.request.sendall(f"FAIL{len(message):04x}{message}".encode())


class FakeAdbServer(socketserver.ThreadingTCPServer):
    """Serves from `start` on; `close` ends it."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, *serials: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.phones: dict[str, SimulatedPhone] = {}
        self.asked: list[str] = []
        self.stopping = threading.Event()
        self.reset(*serials)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def reset(self, *serials: str) -> None:
        """Fresh phones."""
        self.phones = {serial: SimulatedPhone(serial) for serial in serials}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no error."""

    def close(self) -> None:
        self.stopping.set()
        self.shutdown()
        self.server_close()


@contextmanager
def adb_server(*serials: str) -> Iterator[FakeAdbServer]:
    server = FakeAdbServer(*serials)
    try:
        yield server
    finally:
        server.close()
