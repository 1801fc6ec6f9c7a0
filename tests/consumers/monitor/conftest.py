"""A served monitor over a real PostgreSQL with the sample's rows and hostile text."""

import http.client
import struct
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from consumers.database.location import database_engine
from consumers.monitor.blobs import ScreenshotStore
from consumers.monitor.pages import Pages
from consumers.monitor.server import MonitorServer
from consumers.tables import StreamState
from schemas.blobs import blob_path, blob_ref
from schemas.installation import read_installation
from tests.support.postgres import PostgresServer
from tests.support.sample_rows import at, named, training_row, write_sample

HOSTILE = "</pre><script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def png(width: int, height: int) -> bytes:
    """A grey PNG, as the format has it."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    rows = b"".join(b"\0" + b"\x80" * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


SCREENSHOT = png(320, 640)


@dataclass
class Reply:
    """What came back."""

    code: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()


@dataclass
class Monitor:
    """A served monitor."""

    server: MonitorServer
    home: Path
    engine: Engine

    def get(self, path: str, method: str = "GET", host: str | None = None) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=host is not None)
            if host is not None:
                connection.putheader("Host", host)
            connection.endheaders()
            response = connection.getresponse()
            return Reply(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                response.read(),
            )
        finally:
            connection.close()


def serve(pages: Pages, home: Path, engine: Engine) -> Iterator[Monitor]:
    with MonitorServer(0, pages) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield Monitor(server, home, engine)
        finally:
            server.shutdown()
            thread.join()


def put_blob(home: Path, content: bytes) -> str:
    path = home / "blobs" / blob_path(blob_ref(content))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return blob_ref(content)


@pytest.fixture(scope="module")
def monitor(
    postgres: PostgresServer, migrated_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Monitor]:
    home = tmp_path_factory.mktemp("home")
    name = postgres.create(migrated_template)
    engine = database_engine(postgres.url(name))
    with Session(engine) as session:
        write_sample(session, put_blob(home, SCREENSHOT), HOSTILE)
        session.add(
            training_row(
                HOSTILE,
                "failed",
                -200,
                error_message=HOSTILE,
                status_message=HOSTILE,
                model_name=HOSTILE,
            )
        )
        parked = {
            "ends": {},
            "refused": [],
            "statuses": {},
            "dropped": False,
            "drops": {},
            "num_waiting": 0,
            "source": "//h/1/1",
        }
        session.add(
            StreamState(
                stream=f"training/{named('older')}",
                epoch=1,
                sequence=4,
                parked_since=at(3),
                **parked,
            )
        )
        session.commit()
    store = ScreenshotStore(read_installation({"CUA_HOME": str(home)}))
    yield from serve(Pages(lambda: engine, store, lambda: at(35)), home, engine)
    engine.dispose()
    postgres.drop(name)
