"""Debezium's JDBC sink in a Kafka Connect worker of its own, one connector for each table.

Settings that were best: rows as arrays (UNNEST), the reduction buffer (without it a batch that has
a key twice ends the task), batches of 5,000, JSON whose schema is in the connector's settings and
not in every record.
"""

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx

from consumers.database.location import libpq_url
from consumers.tables.base import SCHEMA
from tests.bench.peer_setup import PeerError, debezium_jars
from tests.bench.ready_rows import ReadyTable
from tests.bench.sink_meter import SinkMeter, Spent
from tests.support.ports import free_port

BATCH_ROWS = 5_000
NUM_TASKS = 2
START_TIMEOUT_S = 120.0
JVM = ("-Xms2g", "-Xmx2g", "-XX:+UseParallelGC", "-Duser.timezone=UTC")
"""As arrays, times lose their zone: PostgreSQL would read them in the JVM's."""
WORKER = """bootstrap.servers={servers}
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=5000
listeners=http://127.0.0.1:{port}
plugin.discovery=service_load
"""
CONVERTER = "value.converter"
CONNECTOR = {
    "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
    "tasks.max": NUM_TASKS,
    "insert.mode": "upsert",
    "primary.key.mode": "record_value",
    "collection.name.format": f"{SCHEMA}.${{topic}}",
    "schema.evolution": "none",
    "quote.identifiers": "true",
    "dialect.postgres.unnest.insert.enabled": "true",
    "use.reduction.buffer": "true",
    "batch.size": BATCH_ROWS,
    "connection.pool.min_size": 1,
    "consumer.override.max.poll.records": BATCH_ROWS,
    "consumer.override.max.partition.fetch.bytes": 4 << 20,
    "consumer.override.fetch.min.bytes": 1 << 16,
    "consumer.override.fetch.max.wait.ms": 100,
    "header.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    CONVERTER: "org.apache.kafka.connect.json.JsonConverter",
    f"{CONVERTER}.schemas.enable": "true",
}


class DebeziumWorker:
    """A running Kafka Connect; a context manager. `folder`: for its settings and its log."""

    def __init__(self, servers: str, folder: Path) -> None:
        self._port = free_port()
        settings = folder / "worker.properties"
        settings.write_text(WORKER.format(servers=servers, folder=folder, port=self._port))
        self._log = folder / "connect.log"
        command = [
            *("java", *JVM, "-cp", f"{debezium_jars()}/*"),
            *("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",),
            *("org.apache.kafka.connect.cli.ConnectStandalone", str(settings)),
        ]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder
            )

    def __enter__(self) -> "DebeziumWorker":
        try:
            self._wait_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                self._ask("connectors")
            except (httpx.TransportError, PeerError):  # 404 before its pages are there
                if self.process.poll() is not None or time.monotonic() > deadline:
                    message = f"Kafka Connect did not start:\n{self._log_tail()}"
                    raise PeerError(message) from None
                time.sleep(0.2)
            else:
                return

    def create(self, name: str, table: ReadyTable, url: str) -> None:
        """Start a connector."""
        place = urlsplit(libpq_url(url))
        given = {
            "name": name,
            "topics": table.name,
            "connection.url": f"jdbc:postgresql://{place.hostname}:{place.port}{place.path}",
            "connection.username": place.username,
            "connection.password": unquote(place.password or "none"),
            "primary.key.fields": ",".join(table.key),
            f"{CONVERTER}.schema.content": table.connect_schema,
        }
        settings = {key: str(value) for key, value in (CONNECTOR | given).items()}
        self._ask("connectors", {"name": name, "config": settings})

    def check(self, names: Sequence[str]) -> None:
        """PeerError if a task failed."""
        for name in names:
            status = self._ask(f"connectors/{name}/status")
            for task in (status["connector"], *status["tasks"]):
                if task["state"] == "FAILED":
                    lines = task.get("trace", "").splitlines()
                    causes = [line for line in lines if not line.startswith("\tat")]
                    message = f"{name} failed: " + "\n".join(causes)[:2000]
                    raise PeerError(message)

    def _ask(self, path: str, content: object = None) -> Any:
        """httpx.TransportError while it does not listen, PeerError if it refuses."""
        method = "GET" if content is None else "POST"
        url = f"http://127.0.0.1:{self._port}/{path}"
        answer = httpx.request(method, url, json=content, timeout=60)
        if answer.is_error:
            message = f"Kafka Connect: {answer.text[:2000]}"
            raise PeerError(message)
        return answer.json()

    def _log_tail(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]


def measure_debezium(
    servers: str, folder: Path, url: str, postmaster: int, tables: Sequence[ReadyTable]
) -> Spent:
    """From the connectors' creation in a running worker, until every row is there."""
    names = [f"{folder.name}-{table.name}" for table in tables]
    rows = {table.name: table.rows for table in tables}
    with DebeziumWorker(servers, folder) as worker, SinkMeter(url, postmaster, rows) as meter:

        def begin() -> list["subprocess.Popen[bytes]"]:
            for name, table in zip(names, tables, strict=True):
                worker.create(name, table, url)
            return []

        def check() -> None:
            worker.check(names)

        return meter.follow(begin, check, running=[worker.process], ends_by_itself=False)
