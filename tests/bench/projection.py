"""The cost of projecting a recorded run, live and as a rebuild, beside plain COPY of its rows.

Run: `python -m tests.bench.projection [--json] [--kafka] [--large]`; --large also measures
several processes.
PostgreSQL is a real one with its defaults (every commit is synced).
CPU is this process's and the server's. Rates depend on what else the machine does; CPU per row
hardly does.
"""

import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from random import Random
from typing import NamedTuple

from pydantic_core import from_json

from consumers.database.connection import connected
from consumers.database.migrate import migrate
from consumers.embedded_postgres.cluster import Cluster, stop
from consumers.fold.fold import reduce_gc_frequency
from consumers.log.local import LocalLogReader
from consumers.log.open import open_reader
from consumers.log.reader import LogReader
from consumers.projection.copying import TABLES
from consumers.projection.loop import ParallelFill, ProjectionLoop
from consumers.rebuild.hashing import NAMES
from consumers.rebuild.parallel import Parallel
from consumers.rebuild.rebuild import rebuild
from consumers.rebuild.side_schema import finish_tables, make_tables
from consumers.rebuild.verify import verify
from producer.log.kafka import KafkaLog
from producer.log.local import LocalLog
from producer.log.writer import Record
from schemas.catalogue import TOPIC_NAMES, topic_of
from schemas.installation import Installation
from tests.reference_fold.histories import LoggedEvent, Shape, history, interleaved
from tests.support.kafka import KafkaService
from tests.support.ports import free_port

SHAPE = Shape(
    steps=25,
    groups=5,
    group_size=8,
    turns=6,
    response_chars=150,
    prompt_tokens=300,
    completion_tokens=40,
    has_trouble=False,
)
NUM_TRAININGS = 3
NUM_TRAININGS_LARGE = 15
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
START_TIMEOUT_S = 60


class Cost(NamedTuple):
    """Of one way to fill the tables."""

    rows: int
    rows_per_s: float
    client_cpu_us: float
    """Per row, of this process."""
    server_cpu_us: float
    """Per row, of PostgreSQL."""

    @property
    def cpu_s_per_1000(self) -> float:
        """CPU-seconds per 1,000 rows, both sides."""
        return (self.client_cpu_us + self.server_cpu_us) / 1e3


@contextmanager
def database() -> Iterator[tuple[str, int]]:
    """A server of its own: its URL and its process."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder) / "cluster", os.environ)
        cluster.initialise()
        with cluster.alone(START_TIMEOUT_S) as lock:
            port = free_port()
            server = cluster.start(port, lock, {"max_wal_size": "4GB"})
        try:
            cluster.wait_ready(server, port, START_TIMEOUT_S)
            yield cluster.url(port), server.pid
        finally:
            stop(server)


def cpu_s(pid: int) -> float:
    """CPU-seconds of a process and its children, those that ended included."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat.parent.name) == pid:
            total += sum(int(field) for field in fields[11:15])
        elif int(fields[1]) == pid:
            total += int(fields[11]) + int(fields[12])
    return total / TICKS_PER_S


@contextmanager
def measured(server: int) -> Iterator[list[float]]:
    """Appends seconds on the clock, CPU-seconds of this process and of the server."""
    figures: list[float] = []
    began, client, other = time.perf_counter(), _own_cpu_s(), cpu_s(server)
    yield figures
    figures += [time.perf_counter() - began, _own_cpu_s() - client, cpu_s(server) - other]


def _own_cpu_s() -> float:
    """Of this process and those that it started and that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def cost(rows: int, figures: list[float]) -> Cost:
    """Per row."""
    seconds, client, server = figures
    return Cost(rows, rows / seconds, client / rows * 1e6, server / rows * 1e6)


def recorded_run(num_trainings: int) -> list[LoggedEvent]:
    """Several trainings at once, 23,000 events of 1.4 kB each."""
    return list(
        interleaved(
            [history(f"bench-{number}", number, SHAPE) for number in range(num_trainings)],
            Random(1),
        )
    )


def read_rows(url: str) -> tuple[dict[str, str], int]:
    """Every table as COPY's text, and the number of rows."""
    texts, rows = {}, 0
    with connected(url, "bench") as connection, connection.cursor() as cursor:
        for name in NAMES:
            text = io.StringIO()
            # A migrated table's columns are in another order than those of a new one.
            cursor.copy_expert(f'COPY cua."{name}" ({TABLES[name].names}) TO STDOUT', text)
            texts[name] = text.getvalue()
            rows += cursor.rowcount
    return texts, rows


def make_plain_tables(url: str) -> None:
    """Empty tables with every index of the live ones."""
    with connected(url, "bench") as connection, connection, connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA IF EXISTS plain CASCADE")
    make_tables(url, "plain")
    finish_tables(url, "plain")


def copy_rows(url: str, texts: dict[str, str]) -> None:
    """The same rows, ready-made, into tables with the same indexes."""
    with connected(url, "bench") as connection, connection, connection.cursor() as cursor:
        for name, text in texts.items():
            into = f'COPY plain."{name}" ({TABLES[name].names}) FROM STDIN'
            cursor.copy_expert(into, io.StringIO(text), 1 << 16)


def read_and_parse(reader: LogReader, count: int) -> None:
    """What any consumer must do at least."""
    reader.seek(reader.beginning_offsets(reader.partitions()))
    while count > 0:
        records = reader.poll(5_000, 5.0)
        for record in records:
            from_json(record.value)
        count -= len(records)


def project(
    reader: LogReader, url: str, server: int, expected: int, parallel: ParallelFill | None = None
) -> Cost:
    """Into empty tables."""
    migrate(url, "base")
    migrate(url)
    with measured(server) as figures:
        report = ProjectionLoop(reader, url, parallel=parallel).run_once()
    assert report.events == expected, report
    return cost(read_rows(url)[1], figures)


def run(*, with_kafka: bool, large: bool) -> dict[str, Cost]:
    """Every figure."""
    events = recorded_run(NUM_TRAININGS_LARGE if large else NUM_TRAININGS)
    records = [
        Record(topic_of(event.subject, "cua."), event.subject, event.value) for event in events
    ]
    costs: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory() as folder, database() as (url, server):
        installation = Installation(Path(folder), "cua.", None, (), folder)
        parallel = Parallel(installation, 2).fill if large else None
        path = installation.local_log_path
        with closing(LocalLog(path)) as log:
            for start in range(0, len(records), 1_000):
                log.append(records[start : start + 1_000])
        reduce_gc_frequency()
        with closing(LocalLogReader(path, topic_prefix="cua.")) as reader:
            costs["live, local log"] = project(reader, url, server, len(events))
            if parallel is not None:
                costs["live, local log, 2 processes"] = project(
                    reader, url, server, len(events), parallel
                )
            texts, rows = read_rows(url)
            make_plain_tables(url)
            with measured(server) as figures:
                copy_rows(url, texts)
            costs["plain COPY of the same rows"] = cost(rows, figures)
            make_plain_tables(url)
            with measured(server) as figures:
                read_and_parse(reader, len(events))
                copy_rows(url, texts)
            costs["read, parse, plain COPY"] = cost(rows, figures)
            with measured(server) as figures:
                rebuild(reader, url)
            costs["rebuild, compare"] = cost(rows, figures)
            assert verify(reader, url).equal
        with kafka_reader(records) if with_kafka else nullcontext() as kafka:
            if kafka is not None:
                costs["live, Kafka"] = project(kafka, url, server, len(events))
                with measured(server) as figures:
                    rebuild(kafka, url)
                costs["rebuild, Kafka"] = cost(rows, figures)
    return costs


@contextmanager
def kafka_reader(records: list[Record]) -> Iterator[LogReader]:
    """The same records in a Kafka of its own."""
    service = KafkaService()
    with service, tempfile.TemporaryDirectory() as home:
        service.start()
        installation = Installation(Path(home), "cua.", service.bootstrap_servers, (), home)
        with closing(KafkaLog(installation, ["cua." + name for name in TOPIC_NAMES])) as log:
            for start in range(0, len(records), 5_000):
                log.append(records[start : start + 5_000])
        reader = open_reader(installation)
        try:
            yield reader
        finally:
            reader.close()


def main() -> None:
    """One line per way on stdout; --json: one object."""
    costs = run(with_kafka="--kafka" in sys.argv, large="--large" in sys.argv)
    if "--json" in sys.argv:
        report = {
            name: one._asdict() | {"cpu_s_per_1000": one.cpu_s_per_1000}
            for name, one in costs.items()
        }
        sys.stdout.write(json.dumps(report) + "\n")
        return
    lines = [
        f"{'projection':<32}{'rows':>9}{'rows/s':>9}{'client us':>11}{'server us':>11}"
        f"{'CPU-s per 1,000':>17}"
    ]
    lines += [
        f"{name:<32}{one.rows:>9}{one.rows_per_s:>9.0f}{one.client_cpu_us:>11.1f}{one.server_cpu_us:>11.1f}{one.cpu_s_per_1000:>17.4f}"
        for name, one in costs.items()
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
