"""The stream of changes: what a client is sent, and that no client holds up another."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from consumers.monitor.answer import Answer
from consumers.monitor.api.change import TrainingChange
from consumers.monitor.feed import ChangeFeed, States, TooManyClientsError, table_feed
from consumers.monitor.server import MonitorServer
from consumers.monitor.table_reader import TableReader, UnreadableError
from tests.support.postgres import execute
from tests.support.sample_rows import at, named, training_row, write_sample

DEADLINE_S = 60


class Tables:
    """Trainings with their steps, as a test sets them."""

    def __init__(self, **steps: int) -> None:
        self.steps = steps
        self.is_away = False
        self.readers: set[int] = set()

    def read(self) -> States:
        self.readers.add(threading.get_ident())
        if self.is_away:
            title = "The database is unreachable"
            raise UnreadableError(title, "expected PostgreSQL, found nothing")
        return {
            name: TrainingChange(
                id=named(name),
                run_name=name,
                status="running",
                progress_percent=50.0,
                current_step=step,
                total_steps=100,
                updated_at=at(step),
            )
            for name, step in dict(self.steps).items()
        }


def parsed(chunk: bytes) -> list[dict[str, Any]]:
    """Events of a chunk: their data, with the id."""
    events = []
    for event in chunk.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in event.split("\n"))
        if "data" in fields:
            assert fields["event"] == "training"
            events.append({"event_id": fields["id"], **json.loads(fields["data"])})
    return events


def news(stream: Iterator[bytes]) -> list[dict[str, Any]]:
    """The next events; a comment of a quiet stream is none."""
    return next(events for chunk in stream if (events := parsed(chunk)))


def steps(events: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(event["run_name"], event["current_step"]) for event in events]


def quick(tables: Tables, **limits: int) -> ChangeFeed:
    return ChangeFeed(tables.read, poll_s=0.01, **limits)


def test_a_client_is_sent_every_state_and_then_what_changes() -> None:
    tables = Tables(first=1, second=5)
    with quick(tables).opened(None) as stream:
        events = news(stream)
        assert steps(events) == [("first", 1), ("second", 5)]
        assert (events[0]["id"], events[0]["updated_at"]) == (
            str(named("first")),
            "2026-11-21T12:00:01Z",
        )
        tables.steps["first"] = 2
        assert steps(news(stream)) == [("first", 2)]
        tables.steps["third"] = 0
        assert steps(news(stream)) == [("third", 0)]


def test_a_client_that_comes_back_is_sent_what_it_missed() -> None:
    tables = Tables(first=1, second=5)
    feed = quick(tables)
    with feed.opened(None) as stream:
        last = news(stream)[-1]["event_id"]
    tables.steps["second"] = 6
    with feed.opened(last) as stream:
        assert steps(news(stream)) == [("second", 6)]


@pytest.mark.parametrize("event_id", ["", "1", "another-1", "another-x", "é"])
def test_an_id_of_another_monitor_brings_every_state(event_id: str) -> None:
    with quick(Tables(first=1)).opened(event_id) as stream:
        assert steps(news(stream)) == [("first", 1)]


def test_ids_grow_with_every_change() -> None:
    tables = Tables(first=1, second=5)
    with quick(tables).opened(None) as stream:
        events = news(stream)
        tables.steps["first"] = 2
        events += news(stream)
    numbers = [int(event["event_id"].rpartition("-")[2]) for event in events]
    assert all(earlier < later for earlier, later in pairwise(numbers))


def test_one_thread_polls_for_all_clients() -> None:
    tables = Tables(first=1)
    feed = quick(tables)
    with ExitStack() as clients:
        streams = [clients.enter_context(feed.opened(None)) for _ in range(3)]
        for stream in streams:
            news(stream)
        tables.steps["first"] = 2
        for stream in streams:
            assert steps(news(stream)) == [("first", 2)]
    assert len(tables.readers - {threading.get_ident()}) == 1


def test_more_clients_than_the_limit_are_refused_until_one_goes() -> None:
    feed = quick(Tables(first=1), most_clients=1)
    with feed.opened(None), pytest.raises(TooManyClientsError), feed.opened(None):
        pass
    with feed.opened(None) as stream:
        assert steps(news(stream)) == [("first", 1)]


def test_closing_ends_every_stream() -> None:
    feed = quick(Tables(first=1))
    with feed.opened(None) as stream:
        news(stream)
        feed.close()
        assert not [event for chunk in stream for event in parsed(chunk)]


def test_tables_away_refuse_a_new_stream_and_leave_others_open() -> None:
    tables = Tables(first=1)
    feed = quick(tables)
    with feed.opened(None) as stream:
        news(stream)
        tables.is_away = True
        with pytest.raises(UnreadableError), feed.opened(None):
            pass
        tables.steps["first"] = 2
        tables.is_away = False
        assert steps(news(stream)) == [("first", 2)]


class NoPages:
    def answer(self, path: str) -> Answer:
        raise AssertionError(path)


@contextmanager
def served(feed: ChangeFeed) -> Iterator[MonitorServer]:
    with MonitorServer(0, NoPages(), feed=feed) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def ask(
    server: MonitorServer, method: str = "GET", **headers: str
) -> Iterator[http.client.HTTPResponse]:
    address = ("127.0.0.1", server.server_port)
    with closing(http.client.HTTPConnection(*address, timeout=DEADLINE_S)) as connection:
        connection.request(method, "/events", headers=headers)
        with connection.getresponse() as response:
            yield response


def lines(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Chunks as a feed yields them."""
    while line := response.readline():
        chunk = line
        while line not in {b"\n", b""}:
            line = response.readline()
            chunk += line
        yield chunk


def test_a_stream_ends_with_the_server() -> None:
    with ExitStack() as client:
        with served(quick(Tables(first=1))) as server:
            response = client.enter_context(ask(server))
            assert response.headers["Content-Type"] == "text/event-stream"
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert steps(news(lines(response))) == [("first", 1)]
        assert not [event for chunk in lines(response) for event in parsed(chunk)]


def test_a_client_that_does_not_read_delays_nobody() -> None:
    tables = Tables(**{"x" * 10_000_000: 1})
    with served(quick(tables)) as server, socket.socket() as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        silent.connect(("127.0.0.1", server.server_port))
        silent.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert silent.recv(1) == b"H"
        tables.steps = {"first": 1}
        with ask(server) as response:
            assert steps(news(lines(response))) == [("first", 1)]


def test_what_is_refused_is_json() -> None:
    tables = Tables(first=1)
    with served(quick(tables, most_clients=1)) as server:
        with ask(server), ask(server) as refused:
            assert (refused.status, refused.headers["Retry-After"]) == (503, "10")
            assert "too many clients" in json.load(refused)["error"]
        tables.is_away = True
    with served(quick(tables)) as server, ask(server) as refused:
        assert refused.status == 503
        assert "found nothing" in json.load(refused)["error"]


def test_head_and_a_foreign_host_open_no_stream() -> None:
    with served(quick(Tables(first=1))) as server:
        with ask(server, "HEAD") as response:
            assert (response.status, response.read()) == (200, b"")
        with ask(server, Host="evil.example") as response:
            assert response.status == 421


@pytest.mark.services
def test_a_change_of_the_tables_is_sent(migrated_url: str) -> None:
    engine = create_engine(migrated_url)
    with Session(engine) as session:
        write_sample(session)
        session.add(training_row("odd\ndata: {}\n\n"))
        session.commit()
    feed = table_feed(TableReader(lambda: engine))
    with feed.opened(None) as stream:
        assert sorted(steps(news(stream))) == [("demo", 2), ("odd\ndata: {}\n\n", 2), ("older", 2)]
        execute(migrated_url, "UPDATE cua.training SET current_step = 3 WHERE run_name = 'demo'")
        assert steps(news(stream)) == [("demo", 3)]
    feed.close()
    engine.dispose()


@pytest.mark.services
def test_ctrl_c_ends_the_monitor_although_a_client_follows(migrated_url: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "consumers", "monitor", "--port", "0", "--json"],
        env={**os.environ, "DATABASE_URL": migrated_url},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["url"].rstrip("/").rpartition(":")[2]
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=DEADLINE_S)
        connection.request("GET", "/events")
        response = connection.getresponse()
        assert response.readline() == b"retry: 3000\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 0
        with response:
            response.read()
    finally:
        process.kill()
        process.communicate()
