"""What the monitor answers a program whose database is away, or who gives it a parameter."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from consumers.errors import UnreachableError
from consumers.monitor.blobs import ScreenshotStore
from consumers.monitor.feed import table_feed
from consumers.monitor.pages import Pages
from consumers.monitor.server import MonitorServer
from consumers.monitor.table_reader import CONNECT_WITHIN_S
from schemas.installation import read_installation
from tests.consumers.monitor.conftest import Monitor

SOON_S = CONNECT_WITHIN_S + 3.0
"""With room for a machine that is busy."""


class Starting:
    """A database that is being started, and then is not there."""

    def __init__(self) -> None:
        self.num_attempts, self.has_failed = 0, threading.Event()

    def open_engine(self) -> Engine:
        self.num_attempts += 1
        assert self.has_failed.wait(60)
        message = "expected PostgreSQL, found nothing"
        raise UnreachableError(message)


@pytest.fixture
def starting() -> Iterator[Starting]:
    starting = Starting()
    yield starting
    starting.has_failed.set()


@pytest.fixture
def monitor(starting: Starting, tmp_path: Path) -> Iterator[Monitor]:
    store = ScreenshotStore(read_installation({"CUA_HOME": str(tmp_path)}))
    pages = Pages(starting.open_engine, store, lambda: pytest.fail("nothing is read"))
    with MonitorServer(0, pages, feed=table_feed(pages.tables)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield Monitor(server, tmp_path, create_engine("sqlite://"))
        finally:
            starting.has_failed.set()
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("path", ["/api/trainings", "/api/steps/1", "/events"])
def test_a_program_does_not_wait_for_a_database_that_is_being_started(
    monitor: Monitor, starting: Starting, path: str
) -> None:
    began = time.monotonic()
    replies = [monitor.get(path) for _ in range(2)]
    assert time.monotonic() - began < 2 * SOON_S
    for reply in replies:
        assert reply.code == 503
        assert json.loads(reply.content)["error"] == (
            "The database is unreachable: PostgreSQL has not answered within 2 s; ask again"
        )
    assert starting.num_attempts == 1, "all wait for the same start"
    starting.has_failed.set()
    assert "found nothing" in json.loads(monitor.get(path).content)["error"]


def test_a_page_for_people_waits_for_it(monitor: Monitor, starting: Starting) -> None:
    found: list[str] = []
    waiting = threading.Thread(target=lambda: found.append(monitor.get("/").text))
    waiting.start()
    waiting.join(CONNECT_WITHIN_S + 0.5)
    assert waiting.is_alive()
    starting.has_failed.set()
    waiting.join(60)
    assert "found nothing" in found[0]


@pytest.mark.parametrize("path", ["/api/trainings", "/api/openapi.json", "/api", "/events"])
def test_a_parameter_that_no_path_takes_is_named(monitor: Monitor, path: str) -> None:
    for query, name in (("limit=5", "limit"), ("a%20b", "a b"), ("&&x=&y=1", "x")):
        reply = monitor.get(f"{path}?{query}")
        assert reply.code == 400
        assert json.loads(reply.content)["error"] == (
            f"unknown query parameter {name!r}: {path} takes none; leave it out"
        )


def test_pages_and_their_style_take_any_parameter(monitor: Monitor) -> None:
    assert monitor.get("/style.css?v=2").code == 200
    assert monitor.get("/api/openapi.json?").code == 200
