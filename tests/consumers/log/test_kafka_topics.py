"""A real Kafka whose topics others write to, or that grow: nothing waits for ever."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaAdminClient, KafkaProducer

from consumers.database.migrate import migrate
from consumers.log.open import open_reader
from consumers.log.reader import LogReader
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.parallel import Parallel
from consumers.rebuild.rebuild import rebuild
from consumers.rebuild.verify import verify
from consumers.status import read_status
from consumers.tail.reading import read_bounded
from producer.log.kafka import KafkaLog
from producer.log.writer import Record
from schemas.catalogue import TOPIC_NAMES, topic_of
from schemas.home import home_partition
from schemas.installation import Installation
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.histories import LoggedEvent
from tests.reference_fold.reference import fold
from tests.support.eventually import eventually
from tests.support.kafka import KafkaService
from tests.support.logs import logged_events
from tests.support.reading import installation_on

DEADLINE_S = 30.0
NUM_PARTITIONS = 12


@pytest.fixture
def installation(kafka: KafkaService, tmp_path: Path) -> Installation:
    return installation_on(kafka.bootstrap_servers, tmp_path, f"t{uuid4().hex[:8]}.")


@pytest.fixture
def writer(installation: Installation) -> Iterator[KafkaLog]:
    log = KafkaLog(installation, [installation.topic_prefix + name for name in TOPIC_NAMES])
    yield log
    log.close()


@pytest.fixture
def reader(installation: Installation, writer: KafkaLog) -> Iterator[LogReader]:
    assert writer.log_id
    opened = open_reader(installation)
    yield opened
    opened.close()


def write(log: KafkaLog, events: list[LoggedEvent], prefix: str) -> None:
    log.append(
        [Record(topic_of(event.subject, prefix), event.subject, event.value) for event in events]
    )


def transactions(kafka: KafkaService, send: Callable[[Any], None]) -> None:
    """What a stranger's transactional producer does: one committed, one aborted."""
    producer = KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers, transactional_id=uuid4().hex, linger_ms=0
    )
    producer.init_transactions()
    producer.begin_transaction()
    send(producer)
    producer.commit_transaction()
    producer.begin_transaction()
    send(producer)
    producer.flush()
    producer.abort_transaction()
    producer.close()


def expect(url: str, events: list[LoggedEvent]) -> None:
    reference = fold((event.subject, event.value) for event in events)
    assert differences(plain_tables(reference.tables), database_tables(url)) == []


def test_transaction_markers_at_the_end_of_a_partition_hold_nothing_up(
    migrated_url: str,
    kafka: KafkaService,
    installation: Installation,
    writer: KafkaLog,
    reader: LogReader,
) -> None:
    prefix = installation.topic_prefix
    events = logged_events("a")
    write(writer, events, prefix)
    again = events[-1]
    topic = topic_of(again.subject, prefix)

    def duplicate(producer: Any) -> None:
        home = home_partition(again.subject, NUM_PARTITIONS)
        producer.send(topic, again.value, again.subject.encode(), partition=home)

    transactions(kafka, duplicate)
    began = time.monotonic()

    ProjectionLoop(reader, migrated_url).run_once(limit_s=60)

    assert read_status(reader, migrated_url).lag_events == 0
    expect(migrated_url, events)
    assert verify(reader, migrated_url).equal
    assert rebuild(reader, migrated_url).equal
    assert read_status(reader, migrated_url).lag_events == 0
    partitions = reader.partitions()
    stops = reader.end_offsets(partitions)
    tailed = list(read_bounded(reader, dict.fromkeys(partitions, 0), stops))
    assert len(tailed) == len(events) + 2
    read_back = [pair for name in TOPIC_NAMES for pair in writer.read_topic(prefix + name, {})]
    assert len(read_back) == len(events) + 2
    assert time.monotonic() - began < 120


def test_partitions_that_a_topic_has_grown_are_projected_within_seconds_in_any_order(
    migrated_url: str,
    kafka: KafkaService,
    installation: Installation,
    writer: KafkaLog,
    reader: LogReader,
    caplog: pytest.LogCaptureFixture,
) -> None:
    prefix = installation.topic_prefix
    events = logged_events("a", "b")
    write(writer, events[:250], prefix)
    log_id = reader.log_id
    stop = threading.Event()
    projector_reader = open_reader(installation)
    worker = threading.Thread(
        target=ProjectionLoop(projector_reader, migrated_url).run_forever, args=(stop,)
    )
    worker.start()
    try:
        eventually(lambda: read_status(reader, migrated_url).lag_events == 0)
        admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
        admin.create_partitions({prefix + name: 17 for name in TOPIC_NAMES})
        admin.close()
        grown = KafkaLog(installation, [prefix + name for name in TOPIC_NAMES])
        write(grown, events[250:], prefix)
        grown.close()

        def is_whole() -> bool:
            fresh = open_reader(installation)
            try:
                # The broker confirms partitions before its metadata has them.
                if len(fresh.partitions()) < 17 * len(TOPIC_NAMES):
                    return False
                assert fresh.log_id == log_id
                return read_status(fresh, migrated_url).lag_events == 0
            finally:
                fresh.close()

        eventually(is_whole, 60)
    finally:
        stop.set()
        worker.join(DEADLINE_S)
        projector_reader.close()
    expect(migrated_url, events)
    fresh = open_reader(installation)
    result = rebuild(fresh, migrated_url)
    assert (result.equal, result.changed) == (True, 0)
    # Streams have stayed where they were, so several processes may share them.
    migrate(migrated_url, "base")
    migrate(migrated_url)
    parallel = Parallel(installation, 2, worthwhile_records=1).fill
    ProjectionLoop(fresh, migrated_url, parallel=parallel).run_once()
    assert not [message for message in caplog.messages if "one process" in message]
    expect(migrated_url, events)
    fresh.close()
