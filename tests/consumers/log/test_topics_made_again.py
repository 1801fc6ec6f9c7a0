"""A topic that is deleted and made again is another log, also for whoever reads it meanwhile."""

import threading
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from kafka import KafkaAdminClient

from consumers.errors import MismatchError
from consumers.log.open import open_reader
from consumers.log.reader import LogReader
from consumers.projection.loop import ProjectionLoop
from consumers.status import read_status
from producer.log.kafka import KafkaLog
from schemas.catalogue import TOPIC_NAMES
from tests.consumers.log.test_kafka_topics import expect, write
from tests.support.eventually import eventually
from tests.support.kafka import KafkaService
from tests.support.logs import logged_events
from tests.support.reading import installation_on

MADE_AGAIN = "was deleted and made again while it was read: it is another log"


def polls_until(reader: LogReader, condition: Callable[[], bool]) -> None:
    def polled() -> bool:
        reader.poll(5_000, 0.2)
        return condition()

    eventually(polled)


def test_who_reads_topics_that_are_deleted_and_made_again_makes_none_and_takes_nothing_of_them(
    migrated_url: str, kafka: KafkaService, tmp_path: Path
) -> None:
    """The broker makes a topic that somebody asks for (auto.create.topics.enable, its default)."""
    prefix = f"t{uuid4().hex[:8]}."
    topics = [prefix + name for name in TOPIC_NAMES]
    installation = installation_on(kafka.bootstrap_servers, tmp_path, prefix)
    events = logged_events("a")
    old = KafkaLog(installation, topics)
    write(old, events[:60], prefix)
    old.close()
    reader, idle = open_reader(installation), open_reader(installation)
    idle.seek(idle.end_offsets(idle.partitions()))
    errors: list[BaseException] = []

    def project() -> None:
        try:
            ProjectionLoop(reader, migrated_url).run_forever(threading.Event())
        except MismatchError as error:
            errors.append(error)

    worker = threading.Thread(target=project, daemon=True)
    worker.start()
    eventually(lambda: read_status(idle, migrated_url).lag_events == 0)
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    admin.delete_topics(topics)

    polls_until(idle, lambda: "no longer has the topic" in (idle.problem or ""))
    assert all(topic["error_code"] for topic in admin.describe_topics(topics))
    assert worker.is_alive()

    # Every partition is longer than it was, so that no old position is beyond its end.
    new = KafkaLog(installation, topics)
    write(new, events, prefix)
    new.close()
    with pytest.raises(MismatchError, match=MADE_AGAIN):
        polls_until(idle, lambda: False)
    worker.join(60)
    assert [MADE_AGAIN in str(error) for error in errors] == [True]
    expect(migrated_url, events[:60])
    for item in (reader, idle, admin):
        item.close()
