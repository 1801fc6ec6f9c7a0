"""The cost of turning a recorded log into tables, live from each log and rebuilt.

Measured beside COPY of the very same rows.
"""

import contextlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import psycopg2

from consumers.database.location import libpq_url
from consumers.database.migrate import migrate
from consumers.embedded_postgres.cluster import Cluster, stop
from consumers.log.open import open_reader
from consumers.projection.copying import TABLES
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.rebuild import rebuild
from consumers.tables import ROW_TABLES
from producer.log.kafka import KafkaLog
from producer.log.local import LocalLog
from producer.log.writer import LogWriter, Record
from schemas.catalogue import TOPIC_NAMES, topic_of
from schemas.installation import Installation
from tests.bench.meter import Meter
from tests.support.ports import free_port
from tests.support.postgres import PostgresServer

APPEND_RECORDS = 2_000


class ProjectionCost(NamedTuple):
    """Of one way to fill the tables."""

    what: str
    events: int
    rows: int
    meter: Meter


class BenchServer(NamedTuple):
    """A PostgreSQL with its defaults: fsync on."""

    server: PostgresServer
    postmaster: int


@contextlib.contextmanager
def bench_server(folder: Path) -> Iterator[BenchServer]:
    """Started for the benchmark and ended with it."""
    cluster = Cluster(folder, {})
    cluster.initialise()
    with cluster.alone(10) as lock:
        port = free_port()
        # Its work after millions of rows were inserted would be counted as somebody's question.
        process = cluster.start(port, lock, {"autovacuum": "off"})
    try:
        cluster.wait_ready(process, port, 60)
        yield BenchServer(PostgresServer(cluster, port), process.pid)
    finally:
        stop(process)


def fill_log(installation: Installation, said: list[tuple[str, bytes]]) -> None:
    """Append the recorded events to the installation's log."""
    topics = [installation.topic_prefix + name for name in TOPIC_NAMES]
    log: LogWriter
    log = (
        KafkaLog(installation, topics)
        if installation.kafka_bootstrap_servers
        else LocalLog(installation.local_log_path, topics=topics)
    )
    records = [
        Record(topic_of(subject, installation.topic_prefix), subject, value)
        for subject, value in said
    ]
    for first in range(0, len(records), APPEND_RECORDS):
        log.append(records[first : first + APPEND_RECORDS])
    log.close()


def _migrated(bench: BenchServer) -> str:
    url = bench.server.url(bench.server.create())
    migrate(url)
    return url


def measure_projection(
    bench: BenchServer, installation: Installation, what: str
) -> tuple[ProjectionCost, str]:
    """`cua-project run --once` into fresh tables; the cost, and the tables' URL."""
    url = _migrated(bench)
    reader = open_reader(installation)
    try:
        with Meter(bench.postmaster) as meter:
            report = ProjectionLoop(reader, url).run_once()
    finally:
        reader.close()
    return (
        ProjectionCost(
            what, report.events, sum(rows for rows, _ in dump_tables(url).values()), meter
        ),
        url,
    )


def measure_rebuild(
    bench: BenchServer, installation: Installation, url: str, rows: int
) -> ProjectionCost:
    """`cua-project rebuild` of those tables.

    Replay beside the live ones, and comparison of every row.
    """
    reader = open_reader(installation)
    try:
        with Meter(bench.postmaster) as meter:
            result = rebuild(reader, url)
    finally:
        reader.close()
    if not result.equal:
        message = f"the rebuilt tables differ: {result.different}"
        raise AssertionError(message)
    return ProjectionCost("rebuild, compare", result.events, rows, meter)


def measure_copy(bench: BenchServer, url: str, events: int) -> ProjectionCost:
    """Plain COPY of the same rows as text: same indexes, one connection, one transaction."""
    dumps = dump_tables(url)
    target = _migrated(bench)
    connection = psycopg2.connect(libpq_url(target))
    with Meter(bench.postmaster) as meter, connection, connection.cursor() as cursor:
        for name, (_, content) in dumps.items():
            into = f'COPY cua."{name}" ({TABLES[name].names}) FROM STDIN'
            cursor.copy_expert(into, BytesIO(content), 1 << 16)
    connection.close()
    return ProjectionCost(
        "plain COPY of the same rows", events, sum(count for count, _ in dumps.values()), meter
    )


def dump_tables(url: str) -> dict[str, tuple[int, bytes]]:
    """Table -> number of rows and their text."""
    dumps: dict[str, tuple[int, bytes]] = {}
    with (
        contextlib.closing(psycopg2.connect(libpq_url(url))) as connection,
        connection.cursor() as cursor,
    ):
        for table in ROW_TABLES:
            name, text = table.__tablename__, BytesIO()
            cursor.copy_expert(f'COPY cua."{name}" ({TABLES[name].names}) TO STDOUT', text)
            dumps[name] = (cursor.rowcount, text.getvalue())
    return dumps
