"""What beginning, continuing, tail and status cost as a log in Kafka grows.

Run: `python -m tests.bench.history --kafka`. Kafka is filled as trainings would fill it; the tables
have what a projector would have written of it (the index by the projector's own code). Beginning
and continuing are measured in a home that was never there, from opening the emitter to the decision
how to go on. The broker's CPU is not counted.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from uuid import UUID

from consumers.database.connection import connected
from consumers.fold.training_blocks import BLOCK_OFFSETS
from consumers.log.kafka import KafkaLogReader
from consumers.projection.write import block_commands, execute
from consumers.status import read_status
from producer.emit import Emitter
from producer.log.kafka import KafkaLog
from producer.log.writer import Record
from producer.resume.open_training import read_recorded_training
from schemas.catalogue import TOPIC_NAMES, topic_of
from schemas.installation import Installation
from schemas.local_index import entries_of
from tests.bench.history import Cost, cost, run_once, tables_of, tailing
from tests.bench.long_log import TRAINING, long_history
from tests.bench.projecting import BenchServer, bench_server
from tests.support.kafka import KafkaService

SENT_AT_ONCE = 5_000
Blocks = dict[tuple[str, int, int], set[str]]


def run_on_kafka(lengths: list[int], home: Path) -> dict[int, list[Cost]]:
    """The costs at each length of the log."""
    costs = {}
    with bench_server(home / f"cluster-{os.getpid()}") as bench:
        for length in lengths:
            with KafkaService() as kafka:
                costs[length] = _measure(kafka, bench, length, home)
    return costs


def _installation(kafka: KafkaService, home: Path) -> Installation:
    return Installation(home, "cua.", kafka.bootstrap_servers, (), str(home / "blobs"))


def _measure(kafka: KafkaService, bench: BenchServer, num_events: int, home: Path) -> list[Cost]:
    blocks = _fill(kafka, num_events, home)
    installation = _installation(kafka, home)
    with closing(KafkaLogReader(installation)) as reader:
        url = tables_of(bench, reader, num_events)
        with connected(url, "bench") as connection, connection, connection.cursor() as cursor:
            execute(cursor, block_commands("cua", blocks))
            cursor.execute("UPDATE cua.reader_position SET indexed_from = 0")
            cursor.execute("ANALYZE cua.training_block")
        os.environ["DATABASE_URL"] = url
        costs = [
            cost("cua-train run, a new name", lambda: _begin(kafka, "never heard of"), bench),
            cost("cua-train run, resume, no state here", lambda: _begin(kafka, TRAINING), bench),
        ]
        del os.environ["DATABASE_URL"]
        costs += [
            cost("the same, new name, without tables", lambda: _begin(kafka, "never heard of")),
            cost("the same, resume, without tables", lambda: _begin(kafka, TRAINING)),
        ]
        costs += tailing(reader)
        costs.append(cost("cua-project run --once", lambda: run_once(reader, url), bench))
        costs.append(cost("cua-project status", lambda: read_status(reader, url), bench))
    return costs


def _begin(kafka: KafkaService, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        installation = _installation(kafka, Path(folder))
        with Emitter.open(installation) as emitter:
            found = read_recorded_training(emitter, name, installation.runs_dir / name)
            assert found.stream.exists == (name == TRAINING)


def _fill(kafka: KafkaService, num_events: int, home: Path) -> Blocks:
    """Send the events; the index of them."""
    installation = _installation(kafka, home)
    topics = [installation.topic_prefix + name for name in TOPIC_NAMES]
    blocks: Blocks = {}
    with closing(KafkaLog(installation, topics)) as log:
        records = (
            Record(topic_of(one.subject, installation.topic_prefix), one.subject, one.value)
            for one in long_history(num_events)
        )
        for sent in _batches(records):
            for record, at in zip(sent, log.append(sent), strict=True):
                named = blocks.setdefault(
                    (at.topic, at.partition, at.offset // BLOCK_OFFSETS), set()
                )
                named.update(
                    training
                    for training, _, _ in entries_of(0, 0, record.key, record.value).trainings
                )
                if record.key.startswith("training/"):
                    named.add(str(UUID(record.key.partition("/")[2])))
    return blocks


def _batches(records: Iterator[Record]) -> Iterator[list[Record]]:
    while batch := list(islice(records, SENT_AT_ONCE)):
        yield batch
