"""quixstreams' PostgreSQL sink in two processes of its own environment (quix_app.py)."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from consumers.database.location import libpq_url
from consumers.tables.base import SCHEMA
from tests.bench.peer_setup import PeerError, quixstreams_python
from tests.bench.ready_rows import ReadyTable
from tests.bench.sink_meter import SinkMeter, Spent

NUM_PROCESSES = 2
BATCH_ROWS, BATCH_S = 20_000, 1.0
"""A checkpoint of all partitions together; its statements are of 100 rows whatever its size. What
is left at the end waits for the second."""
STOP_TIMEOUT_S = 60


def measure_quixstreams(
    servers: str, folder: Path, url: str, postmaster: int, tables: Sequence[ReadyTable]
) -> Spent:
    """From its processes' start until every row is there."""
    python = quixstreams_python()
    place = urlsplit(libpq_url(url))
    settings = {
        "servers": servers,
        "group": folder.name,
        "batch_rows": BATCH_ROWS,
        "batch_s": BATCH_S,
        "consumer": {
            "fetch.min.bytes": 1 << 16,
            "fetch.wait.max.ms": 100,
            "max.partition.fetch.bytes": 4 << 20,
        },
        "schema": SCHEMA,
        "database": {
            "host": place.hostname,
            "port": place.port,
            "dbname": place.path.lstrip("/"),
            "user": place.username,
            "password": unquote(place.password or ""),
        },
        "tables": [
            {"name": table.name, "key": table.key, "nullable": table.nullable} for table in tables
        ],
    }
    command = [str(python), "-P", str(Path(__file__).with_name("quix_app.py"))]
    log_path = folder / "quixstreams.log"
    processes: list[subprocess.Popen[bytes]] = []

    def start(log: BinaryIO) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [*command, json.dumps(settings)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
        )

    def begin() -> list["subprocess.Popen[bytes]"]:
        with log_path.open("ab") as log:
            processes.extend([start(log) for _ in range(NUM_PROCESSES)])
        return processes

    def check() -> None:
        if any(process.poll() is not None for process in processes):
            message = f"quixstreams ended:\n{log_path.read_text(errors='replace')[-2000:]}"
            raise PeerError(message)

    rows = {table.name: table.rows for table in tables}
    try:
        with SinkMeter(url, postmaster, rows) as meter:
            return meter.follow(begin, check, ends_by_itself=False)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
