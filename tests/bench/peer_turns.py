"""The turns of the sinks that `make bench-peers` compares: each on a new database, then checked."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path

import psycopg2

from consumers.database.location import libpq_url
from consumers.database.migrate import migrate
from consumers.projection.copying import TABLES
from consumers.tables.base import SCHEMA
from schemas.installation import Installation, read_installation
from tests.bench.debezium import measure_debezium
from tests.bench.emitting import recorded
from tests.bench.meter import Meter
from tests.bench.peer_setup import PeerError
from tests.bench.projecting import BenchServer, bench_server, dump_tables, fill_log
from tests.bench.quix import measure_quixstreams
from tests.bench.ready_rows import ReadyTable, RowCount, held_rows, load_rows
from tests.bench.sink_meter import SinkMeter, Spent, Stretch, machine_cpu_s
from tests.support.kafka import KafkaService
from tests.support.paths import ROOT

OURS, DEBEZIUM, QUIXSTREAMS, COPY = "cua-project", "Debezium", "quixstreams", "plain COPY"
SINKS = (OURS, DEBEZIUM, QUIXSTREAMS, COPY)


@dataclass
class Turns:
    """Lets one sink after the other fill a new database."""

    bench: BenchServer
    kafka: KafkaService
    installation: Installation
    folder: Path
    num_events: int
    template: str
    """A database with our tables, empty."""
    tables: list[ReadyTable]
    """Ready-made in Kafka."""
    held: dict[str, RowCount]
    """Every table as our projector fills it."""
    dumps: dict[str, tuple[int, bytes]]
    """As COPY's text."""

    @property
    def num_rows(self) -> int:
        """Of all tables."""
        return sum(count.rows for count in self.held.values())

    def take(self, sink: str, number: int) -> Spent:
        """One sink's turn in a round. PeerError if its rows are not ours."""
        database = self.bench.server.create(self.template)
        url = self.bench.server.url(database)
        folder = self.folder / f"{sink.replace(' ', '-').lower()}-{number}-{os.getpid()}"
        folder.mkdir()
        _execute(self.bench.server.url(), "CHECKPOINT")
        place = (self.kafka.bootstrap_servers, folder, url, self.bench.postmaster, self.tables)
        take = {
            OURS: partial(self._project, url),
            DEBEZIUM: partial(measure_debezium, *place),
            QUIXSTREAMS: partial(measure_quixstreams, *place),
            COPY: partial(self._copy, url),
        }
        spent = take[sink]()
        wanted = (
            self.held
            if sink in (OURS, COPY)
            else {table.name: self.held[table.name] for table in self.tables}
        )
        check_rows(sink, held_rows(url, list(wanted)), wanted)
        self.bench.server.drop(database)
        return spent

    def _project(self, url: str) -> Spent:
        rows = {name: count.rows for name, count in self.held.items()}
        with SinkMeter(url, self.bench.postmaster, rows) as meter:
            return meter.follow(
                lambda: [_projector(self.installation, url)], lambda: None, ends_by_itself=True
            )

    def _copy(self, url: str) -> Spent:
        """One connection, one transaction."""
        busy = machine_cpu_s()
        with (
            closing(psycopg2.connect(libpq_url(url))) as connection,
            Meter(self.bench.postmaster) as meter,
            connection,
            connection.cursor() as cursor,
        ):
            for name, (_, content) in self.dumps.items():
                into = f'COPY "{SCHEMA}"."{name}" ({TABLES[name].names}) FROM STDIN'
                cursor.copy_expert(into, BytesIO(content), 1 << 16)
        other = machine_cpu_s() - busy - meter.own_s - meter.server_s
        return Spent(
            Stretch(self.num_rows, meter.seconds, meter.own_s, meter.server_s, other), None
        )


def check_rows(sink: str, found: Mapping[str, RowCount], wanted: Mapping[str, RowCount]) -> None:
    """PeerError that names the tables which differ."""
    different = [
        f"{name} has {found[name].rows:,} of {count.rows:,} rows"
        + (" with other values" if found[name].rows == count.rows else "")
        for name, count in wanted.items()
        if found[name] != count
    ]
    if different:
        message = f"{sink} did not write our rows: {'; '.join(different)}"
        raise PeerError(message)


@contextmanager
def prepared(num_events: int, folder: Path) -> Iterator[Turns]:
    """Kafka with the events and the ready-made rows, and PostgreSQL with the empty tables."""
    said = recorded(num_events)
    with KafkaService() as kafka, bench_server(folder / "cluster") as bench:
        installation = replace(
            read_installation({"CUA_HOME": str(folder / "home")}),
            kafka_bootstrap_servers=kafka.bootstrap_servers,
        )
        fill_log(installation, said)
        count = len(said)
        del said
        template = bench.server.create()
        migrate(bench.server.url(template))
        database = bench.server.create(template)
        url = bench.server.url(database)
        if code := _projector(installation, url).wait():
            message = f"cua-project run --once ended with {code}"
            raise PeerError(message)
        tables = load_rows(url, kafka.bootstrap_servers, kafka.port)
        dumps = dump_tables(url)
        held = held_rows(url, list(dumps))
        bench.server.drop(database)
        yield Turns(bench, kafka, installation, folder, count, template, tables, held, dumps)


def _projector(installation: Installation, url: str) -> "subprocess.Popen[bytes]":
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CUA_", "KAFKA_", "POSTGRES_", "PG"))
    }
    return subprocess.Popen(
        [sys.executable, "-m", "consumers", "run", "--once"],
        cwd=ROOT,
        env=environment
        | {
            "CUA_HOME": str(installation.home),
            "KAFKA_BOOTSTRAP_SERVERS": str(installation.kafka_bootstrap_servers),
            "DATABASE_URL": url,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _execute(url: str, statement: str) -> None:
    with closing(psycopg2.connect(libpq_url(url))) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
