"""What beginning, continuing, tail and status cost as a log in Kafka grows.

Run: `python -m tests.bench.history --kafka`. Kafka is filled as trainings would fill it; the tables
have what a projector would have written of it (the index by the projector's own code). Beginning
and continuing are measured in a home that was never there, from opening the emitter to the decision
how to go on. The broker's CPU is not counted.
"""

import gc
import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from math import nan
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
from producer.resume.recorded_training import read_recorded_training
from schemas.catalogue import NUM_PARTITIONS, TOPIC_NAMES, topic_of
from schemas.installation import Installation
from schemas.local_index import entries_of
from schemas.local_log import partition_of
from tests.bench.history import Cost, cost, run_once, tables_of, tailing
from tests.bench.kafka_loading import KafkaLoader
from tests.bench.long_log import TRAINING, long_history
from tests.bench.projecting import BenchServer, bench_server
from tests.support.kafka import KafkaService

logger = logging.getLogger(__name__)

SENT_AT_ONCE = 5_000
NAMES = b'"trainingid":"'
READ_WHOLE_TO = 100_000
"""Events up to which a resume without tables is measured: it reads the whole log."""
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
    began = time.monotonic()
    blocks = _fill(kafka, num_events, home)
    logger.info("%s events loaded in %.0f s", f"{num_events:,}", time.monotonic() - began)
    installation = _installation(kafka, home)
    with closing(KafkaLogReader(installation)) as reader:
        url = tables_of(bench, reader, num_events)
        with connected(url, "bench") as connection, connection, connection.cursor() as cursor:
            execute(cursor, block_commands("cua", blocks))
            # No trainer holds them: collecting garbage would walk through them in what is measured.
            del blocks
            gc.collect()
            cursor.execute("UPDATE cua.reader_position SET indexed_from = 0")
        with connected(url, "bench") as connection, connection.cursor() as cursor:
            connection.autocommit = True
            cursor.execute("VACUUM ANALYZE")
        os.environ["DATABASE_URL"] = url
        costs = [
            cost("cua-train run, a new name", lambda: _begin(kafka, "never heard of"), bench),
            cost("cua-train run, resume, no state here", lambda: _begin(kafka, TRAINING), bench),
        ]
        del os.environ["DATABASE_URL"]
        costs += [
            cost("the same, new name, without tables", lambda: _begin(kafka, "never heard of")),
            cost("the same, resume, without tables", lambda: _begin(kafka, TRAINING))
            if num_events <= READ_WHOLE_TO
            else Cost("the same, resume, without tables", nan, nan),
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
    """Load the events; the index of them."""
    installation = _installation(kafka, home)
    prefix = installation.topic_prefix
    KafkaLog(installation, [prefix + name for name in TOPIC_NAMES]).close()
    blocks: Blocks = {}
    records = (
        Record(topic_of(item.subject, prefix), item.subject, item.value)
        for item in long_history(num_events)
    )
    with KafkaLoader("127.0.0.1", kafka.port) as loader:
        for sent in _batches(records):
            placed: dict[tuple[str, int], list[Record]] = {}
            for record in sent:
                place = record.topic, partition_of(record.key, NUM_PARTITIONS)
                placed.setdefault(place, []).append(record)
            for (topic, partition), own in placed.items():
                first = loader.append(topic, partition, own)
                # One in some thousands is read as a projector reads it.
                assert _named(own[0]) == _named_as_projected(own[0])
                for number, record in enumerate(own, first):
                    block = topic, partition, number // BLOCK_OFFSETS
                    blocks.setdefault(block, set()).add(_named(record))
    return blocks


def _named(record: Record) -> str:
    """The training that a record of `long_history` names, found where it stands."""
    start = record.value.index(NAMES) + len(NAMES)
    return record.value[start : start + 36].decode()


def _named_as_projected(record: Record) -> str:
    named = {training for training, _, _ in entries_of(0, 0, record.key, record.value).trainings}
    if record.key.startswith("training/"):
        named.add(str(UUID(record.key.partition("/")[2])))
    (training,) = named
    return training


def _batches(records: Iterator[Record]) -> Iterator[list[Record]]:
    while batch := list(islice(records, SENT_AT_ONCE)):
        yield batch
