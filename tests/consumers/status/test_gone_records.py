"""Records that Kafka deleted before they were projected: an alert, not empty tables and an "ok"."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from kafka import TopicPartition as KafkaPartition
from kafka.admin import KafkaAdminClient, NewTopic
from sqlalchemy.orm import Session

from consumers.database.location import database_engine
from consumers.errors import CuaProjectError
from consumers.log.open import open_reader
from consumers.metrics.probe import Probe
from consumers.monitor.overview import overview_page
from consumers.projection.loop import ProjectionLoop
from consumers.status import alerts, read_status
from producer.errors import UsageError
from producer.log.event_log import EventLog
from producer.log.kafka import KafkaLog
from producer.log.writer import Record
from schemas.catalogue import NUM_PARTITIONS, TOPIC_NAMES, topic_of
from schemas.installation import Installation
from tests.reference_fold.histories import LoggedEvent, Shape
from tests.support.kafka import PROPERTIES, KafkaService
from tests.support.logs import logged_events
from tests.support.reading import installation_on

pytestmark = pytest.mark.services

SMALL = Shape(steps=1, groups=1, group_size=2, turns=2, has_trouble=False)
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.001",
    "segment.ms": "50",
    "min.compaction.lag.ms": "0",
}
DEADLINE_S = 90.0
NO_LAG = timedelta(0)


@pytest.fixture(scope="module")
def cleaning_kafka() -> Iterator[KafkaService]:
    """A broker whose log cleaner looks for work all the time."""
    with KafkaService(PROPERTIES + "log.cleaner.backoff.ms=100\n") as service:
        yield service


@pytest.fixture
def events() -> list[LoggedEvent]:
    return logged_events("one", shape=SMALL)


def make_topics(servers: str, prefix: str, **settings: str) -> list[str]:
    topics = [prefix + name for name in TOPIC_NAMES]
    admin = KafkaAdminClient(bootstrap_servers=servers)
    given = {name.replace("_", "."): value for name, value in settings.items()}
    admin.create_topics(
        [NewTopic(topic, NUM_PARTITIONS, 1, topic_configs=given) for topic in topics]
    )
    admin.close()
    return topics


def send(installation: Installation, events: Sequence[LoggedEvent]) -> None:
    prefix = installation.topic_prefix
    records = [
        Record(topic_of(event.subject, prefix), event.subject, event.value) for event in events
    ]
    with contextlib.closing(KafkaLog(installation)) as writer:
        writer.append(records)


def num_records(installation: Installation) -> int:
    """Those that a reader still gets."""
    with contextlib.closing(open_reader(installation)) as reader:
        partitions = reader.partitions()
        ends = reader.end_offsets(partitions)
        reader.seek(reader.beginning_offsets(partitions))
        found = 0
        while reader.positions() != {at: ends[at] for at in reader.positions()}:
            found += len(reader.poll(1000, 0.2))
        return found


def project(installation: Installation, url: str) -> None:
    with contextlib.closing(open_reader(installation)) as reader:
        ProjectionLoop(reader, url).run_once()


def reasons(installation: Installation, url: str, max_lag: timedelta = NO_LAG) -> list[str]:
    with contextlib.closing(open_reader(installation)) as reader:
        return alerts(read_status(reader, url, installation=installation), max_lag)


def found_gone(installation: Installation, url: str) -> list[str]:
    found = reasons(installation, url, timedelta(hours=1))
    return [text for text in found if text.startswith("gone: ")]


def test_streams_that_a_log_cleaner_has_emptied_are_an_alert_everywhere(
    tmp_path: Path, cleaning_kafka: KafkaService, migrated_url: str
) -> None:
    """190 of 294 events counted as applied, the tables were empty, and status said ok."""
    servers = cleaning_kafka.bootstrap_servers
    make_topics(servers, "cleaned.", **COMPACTED)
    installation = installation_on(servers, tmp_path, "cleaned.")
    # Only a later append closes a segment, and the cleaner leaves the open one alone.
    deadline, sent = time.monotonic() + DEADLINE_S, 0
    for number in count():
        assert time.monotonic() < deadline, "the log cleaner has not run"
        events = logged_events(f"training-{number}", shape=SMALL)
        send(installation, events)
        sent += len(events)
        if num_records(installation) < sent:
            break
    project(installation, migrated_url)
    (reason,) = [text for text in reasons(installation, migrated_url) if "does not have" in text]
    assert reason.startswith("waiting: ")
    assert "cleaned.rollouts" in reason or "cleaned.training" in reason
    assert not reasons(installation, migrated_url, timedelta(hours=1))
    seen = Probe(installation, lambda: migrated_url).look()
    assert seen.tables is not None
    assert seen.tables.gap_seconds > 0
    engine = database_engine(migrated_url)
    with Session(engine) as session:
        later = datetime.now(UTC) + timedelta(minutes=1)
        assert "for records that the log does not have" in str(overview_page(session, later))
    engine.dispose()


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_trainer_refuses_topics_that_are_compacted(
    policy: str, tmp_path: Path, cleaning_kafka: KafkaService
) -> None:
    servers, prefix = cleaning_kafka.bootstrap_servers, f"refused{len(policy)}."
    make_topics(servers, prefix, cleanup_policy=policy)
    log = EventLog.open(installation_on(servers, tmp_path, prefix))
    with pytest.raises(UsageError, match=rf"is compacted \(cleanup.policy={policy}\)") as error:
        log.connect()
    log.close(5)
    assert "--add-config cleanup.policy=delete,retention.ms=-1,retention.bytes=-1" in str(
        error.value
    )


def test_a_trainer_warns_once_of_topics_that_delete_their_oldest_records(
    tmp_path: Path, cleaning_kafka: KafkaService, caplog: pytest.LogCaptureFixture
) -> None:
    servers = cleaning_kafka.bootstrap_servers
    topics = make_topics(servers, "aged.", retention_ms="86400000")
    log = EventLog.open(installation_on(servers, tmp_path, "aged."))
    log.connect(30)
    log.close(5)
    said = [text for text in caplog.messages if "deletes old records" in text]
    assert sorted(said) == sorted(
        text for topic in topics for text in said if text.startswith(f"topic {topic} deletes")
    )
    assert len(said) == len(topics)
    assert "(retention.ms=86400000)" in said[0]


def test_records_deleted_before_they_were_projected_are_an_alert(
    tmp_path: Path, events: list[LoggedEvent], cleaning_kafka: KafkaService, migrated_url: str
) -> None:
    """All of them: then nothing is left that could be behind."""
    servers = cleaning_kafka.bootstrap_servers
    make_topics(servers, "emptied.", retention_ms="-1")
    installation = installation_on(servers, tmp_path, "emptied.")
    half = len(events) // 2
    send(installation, events[:half])
    project(installation, migrated_url)
    assert not found_gone(installation, migrated_url)
    send(installation, events[half:])
    with contextlib.closing(open_reader(installation)) as reader:
        ends = reader.end_offsets(reader.partitions())
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.delete_records({KafkaPartition(*at): end for at, end in ends.items() if end})
    admin.close()
    (reason,) = found_gone(installation, migrated_url)
    assert reason.startswith(f"gone: {len(events) - half} records of emptied.")
    seen = Probe(installation, lambda: migrated_url).look()
    assert seen.log is not None
    assert seen.log.partitions is not None
    assert sum(partition.num_gone for partition in seen.log.partitions) == len(events) - half
    with pytest.raises(CuaProjectError, match="records were deleted"):
        project(installation, migrated_url)
