"""What beginning, continuing, tail and status cost as a log in Kafka grows.

Run: `python -m tests.bench.history --kafka`. Kafka is filled as trainings would fill it; the tables
have what a projector would have written of it. Beginning and continuing are measured in a home that
was never there, from opening the emitter to the decision how to go on. The broker's CPU is not
counted.
"""

import logging
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import timedelta
from itertools import islice
from pathlib import Path

from kafka.admin import ConfigResource, KafkaAdminClient

from consumers.log.kafka import KafkaLogReader
from consumers.status import read_status
from producer.emit import Emitter
from producer.log.writer import Record
from producer.resume.recorded_training import read_recorded_training
from schemas.catalogue import NUM_PARTITIONS, TOPIC_NAMES, topic_of
from schemas.home import home_partition
from schemas.installation import Installation
from schemas.kafka_log import TIMES_SETTING, TOPIC_SETTINGS
from tests.bench.history import Cost, cost, run_once, tables_of, tailing
from tests.bench.kafka_loading import KafkaLoader
from tests.bench.long_log import SHAPE, TRAINING, long_history
from tests.bench.projecting import BenchServer, bench_server
from tests.reference_fold.histories import LoggedEvent, history
from tests.reference_fold.writers import BEGAN
from tests.support.kafka import KafkaService

logger = logging.getLogger(__name__)

SENT_AT_ONCE = 5_000
LATE = "late"
"""A training that began after everything else was in the log, by Kafka's times."""
NEW = "never heard of"


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
    _fill(kafka, num_events)
    logger.info("%s events loaded in %.0f s", f"{num_events:,}", time.monotonic() - began)
    with closing(KafkaLogReader(_installation(kafka, home))) as reader:
        url = tables_of(bench, reader, num_events)
        return [
            cost("cua-train run, a new name", lambda: _begin(kafka, NEW)),
            cost("resume, no state here, begun last", lambda: _begin(kafka, LATE)),
            cost("resume, no state here, begun first", lambda: _begin(kafka, TRAINING)),
            *tailing(reader),
            cost("cua-project run --once", lambda: run_once(reader, url), bench),
            cost("cua-project status", lambda: read_status(reader, url), bench),
        ]


def _begin(kafka: KafkaService, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        installation = _installation(kafka, Path(folder))
        with Emitter.open(installation) as emitter:
            found = read_recorded_training(emitter, name, installation.runs_dir / name)
            assert found.stream.exists == (name != NEW)


def _fill(kafka: KafkaService, num_events: int) -> None:
    """Load the events with the times that Kafka would have given them."""
    topics = [f"cua.{name}" for name in TOPIC_NAMES]
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)) as admin:
        settings = {**TOPIC_SETTINGS, TIMES_SETTING: "CreateTime"}
        wanted = {"num_partitions": NUM_PARTITIONS, "configs": settings}
        admin.create_topics(dict.fromkeys(topics, wanted), wait_for_metadata=True)
        with KafkaLoader("127.0.0.1", kafka.port) as loader:
            for events, days in ((long_history(num_events), -2), (history(LATE, 1, SHAPE), 0)):
                time_ms = int((BEGAN + timedelta(days=days)).timestamp() * 1000)
                for sent in _batches(iter(events)):
                    _append(loader, sent, time_ms)
        stamped = {TIMES_SETTING: TOPIC_SETTINGS[TIMES_SETTING]}
        admin.alter_configs([ConfigResource("TOPIC", topic, configs=stamped) for topic in topics])


def _append(loader: KafkaLoader, events: Iterable[LoggedEvent], time_ms: int) -> None:
    placed: dict[tuple[str, int], list[Record]] = {}
    for event in events:
        record = Record(topic_of(event.subject, "cua."), event.subject, event.value)
        place = record.topic, home_partition(record.key, NUM_PARTITIONS)
        placed.setdefault(place, []).append(record)
    for (topic, partition), records in placed.items():
        loader.append(topic, partition, records, time_ms)


def _batches(events: Iterator[LoggedEvent]) -> Iterator[list[LoggedEvent]]:
    while batch := list(islice(events, SENT_AT_ONCE)):
        yield batch
