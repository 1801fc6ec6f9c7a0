"""A stand-in of GBox on a free port: boxes with the simulated phone, asked by GBox's own SDK."""

import base64
import io
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit

from PIL import Image

from producer.agents.android.sim.device import gestures, shell
from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.gbox.agent import OPEN
from producer.agents.gbox.service import GboxService
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
    Scroll,
    Swipe,
    SystemButton,
    Type,
)

KEY = "gbox-key-of-the-tests"
NOTHING = Task("nothing", "Nothing", "Do nothing.", None, None, 1, None, None)
BUTTONS = {
    "home": "home",
    "back": "back",
    "appSwitch": "recents",
    "power": "power",
    "volumeUp": "volume_up",
    "volumeDown": "volume_down",
}
Answer = tuple[int, dict[str, Any]]
"""HTTP status and body."""


class Box:
    """A box, alive until it is terminated."""

    def __init__(self, box_id: str, box_type: str, config: dict[str, Any]) -> None:
        self.box_id, self.box_type, self.config = box_id, box_type, config
        self.status = "running"
        self.created_at = datetime.now(UTC)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.random = Random(box_id)
        """Of its own, so that what fails does not depend on how boxes take turns."""
        self.sim = AndroidSim()
        self.sim.start(NOTHING, seed=1)
        self.lock = threading.Lock()

    def facts(self) -> dict[str, Any]:
        hours = timedelta(hours=1)
        return {
            "id": self.box_id,
            "type": self.box_type,
            "status": self.status,
            "createdAt": self.created_at.isoformat(),
            "updatedAt": self.created_at.isoformat(),
            "expiresAt": (self.created_at + hours).isoformat(),
            "config": {
                "cpu": 2,
                "memory": 2048,
                "storage": 8,
                "envs": {},
                "labels": self.config.get("labels", {}),
                "os": {"version": "13"},
            },
        }

    def answer(self, what: str, asked: dict[str, Any]) -> Answer:
        if what == "commands":
            return self.run(asked["command"])
        if what.startswith("actions/"):
            return self.act(what.removeprefix("actions/"), asked)
        if (opened := re.fullmatch(r"android/packages/(.+)/open", what)) is not None:
            return self.open_app(opened[1])
        return 404, {"message": f"there is no {what}"}

    def act(self, name: str, asked: dict[str, Any]) -> Answer:
        self.asked.append((name, asked))
        if name == "screenshot":
            picture = io.BytesIO()
            self._picture().convert("RGBA").save(picture, "PNG", compress_level=1)
            coded = base64.b64encode(picture.getvalue()).decode()
            return 200, {"uri": f"data:image/png;base64,{coded}"}
        if self.box_type == "android":
            try:
                gestures.perform(self.sim.phone, _action(name, asked))
            except ActionRefusedError as error:
                return 400, {"message": str(error)}
        return 200, {"actionId": "1", "message": "done"}

    def _picture(self) -> Image.Image:
        if self.box_type == "android":
            return self.sim.picture()
        return Image.new("RGB", (640, 480), (len(self.asked) // 10, 0, 0))

    def run(self, command: str) -> Answer:
        printed = shell.run(self.sim.phone, command)
        stdout, stderr = (printed.text, "") if printed.status == 0 else ("", printed.text)
        return 200, {"exitCode": printed.status, "stdout": stdout, "stderr": stderr}

    def open_app(self, package: str) -> Answer:
        try:
            gestures.perform(self.sim.phone, OpenApp(package=package))
        except ActionRefusedError as error:
            return 404, {"message": str(error)}
        return 200, {}


def _press_button(asked: dict[str, Any]) -> Action:
    buttons = asked["buttons"]
    if len(buttons) > 1:
        return KeyPress(keys=tuple(BUTTONS[name] for name in buttons))
    return SystemButton.model_validate({"button": BUTTONS[buttons[0]]})


def _swipe(asked: dict[str, Any]) -> Action:
    start, end = asked["start"], asked["end"]
    return Swipe(x=start["x"], y=start["y"], to_x=end["x"], to_y=end["y"])


def _scroll(asked: dict[str, Any]) -> Action:
    return Scroll(x=asked["x"], y=asked["y"], scroll_x=asked["scrollX"], scroll_y=asked["scrollY"])


ACTIONS: dict[str, Callable[[dict[str, Any]], Action]] = {
    "tap": lambda asked: Click(x=asked["x"], y=asked["y"]),
    "click": lambda asked: DoubleClick(x=asked["x"], y=asked["y"]),
    "long-press": lambda asked: LongPress(x=asked["x"], y=asked["y"]),
    "swipe": _swipe,
    "drag": lambda asked: Drag(path=tuple((point["x"], point["y"]) for point in asked["path"])),
    "scroll": _scroll,
    "type": lambda asked: Type(text=asked["text"] + "\n" * asked.get("pressEnter", False)),
    "press-key": lambda asked: KeyPress(keys=tuple(asked["keys"])),
    "press-button": _press_button,
}


def _action(name: str, asked: dict[str, Any]) -> Action:
    return ACTIONS[name](asked)


class FakeGbox(ThreadingHTTPServer):
    """Serves from its making on; `close` ends it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.boxes: dict[str, Box] = {}
        self.failing = 0.0
        """Share of the requests about a box that are answered with `failing_status`."""
        self.failing_status = 500
        self.failing_next = 0
        """So many requests more about a box fail."""
        self.hang_s = 0.0
        """How long each answer about a box takes."""
        self.refuses_to_close = False
        self.most_alive = 0
        self.requests: list[str] = []
        self.random = Random(7)
        self._lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/api/v1"

    @property
    def alive(self) -> list[Box]:
        return [box for box in self.boxes.values() if box.status == "running"]

    def create(self, box_type: str, config: dict[str, Any]) -> Box:
        with self._lock:
            box = Box(f"box-{len(self.boxes) + 1}", box_type, config)
            self.boxes[box.box_id] = box
            self.most_alive = max(self.most_alive, len(self.alive))
        return box

    def fails(self, random: Random) -> bool:
        with self._lock:
            self.failing_next -= 1
            return self.failing_next >= 0 or random.random() < self.failing

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no error."""

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: FakeGbox
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Silent."""

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self._answer(json.loads(self.rfile.read(length) or b"{}"))

    def _answer(self, asked: dict[str, Any]) -> None:
        url = urlsplit(self.path)
        path = url.path.removeprefix("/api/v1")
        self.server.requests.append(f"{self.command} {path}")
        if self.headers.get("Authorization") != f"Bearer {KEY}":
            given = self.headers.get("Authorization", "")
            status, body = 401, {"message": f"no such key: {given}"}
        else:
            status, body = self._route(path, asked, parse_qs(url.query))
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _route(self, path: str, asked: dict[str, Any], query: dict[str, list[str]]) -> Answer:
        if path == "/boxes":
            return self._list(query)
        if path in {"/boxes/android", "/boxes/linux"}:
            return self._create(path.rpartition("/")[2], asked)
        match = re.fullmatch(r"/boxes/([^/]+)/(.+)", path)
        box = self.server.boxes.get(match[1]) if match else None
        if match is None or box is None or box.status != "running":
            return 404, {"message": "there is no such box"}
        return self._about(box, match[2], asked)

    def _create(self, box_type: str, asked: dict[str, Any]) -> Answer:
        if self.server.fails(self.server.random):
            return self.server.failing_status, {"message": "no box today"}
        return 200, self.server.create(box_type, asked.get("config", {})).facts()

    def _about(self, box: Box, what: str, asked: dict[str, Any]) -> Answer:
        if what == "terminate" and self.server.refuses_to_close:
            return 400, {"message": "not now"}
        if what == "terminate":
            box.status = "terminated"
            return 200, {}
        time.sleep(self.server.hang_s)
        if self.server.fails(box.random):
            return self.server.failing_status, {"message": "the box is not well"}
        with box.lock:
            return box.answer(what, asked)

    def _list(self, query: dict[str, list[str]]) -> Answer:
        page, size = int(query["page"][0]), int(query["pageSize"][0])
        asked = query["status"][0].split(",")
        found = [box.facts() for box in self.server.boxes.values() if box.status in asked]
        shown = found[(page - 1) * size : page * size]
        return 200, {"data": shown, "page": page, "pageSize": size, "total": len(found)}


@contextmanager
def gbox_server() -> Iterator[FakeGbox]:
    server = FakeGbox()
    try:
        yield server
    finally:
        for service in OPEN.values():
            service.disconnect()
        OPEN.clear()
        server.close()


@contextmanager
def service_of(server: FakeGbox, *, key: str = KEY, limit_s: float = 5.0) -> Iterator[GboxService]:
    service = GboxService(key, base_url=server.url, limit_s=limit_s)
    try:
        yield service
    finally:
        service.disconnect()
