"""Other records in the place of those that were read, on topics that are not as ours are."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from consumers.log.open import open_reader
from consumers.log.reader import LastRecord, LogReader, TopicPartition
from schemas.catalogue import TOPIC_NAMES
from schemas.ids import EPOCH_START
from tests.consumers.log.test_kafka_topics import transactions
from tests.support.kafka import KafkaService
from tests.support.reading import installation_on

SECOND = timedelta(seconds=1)


@pytest.fixture
def reader(kafka: KafkaService, tmp_path: Path) -> Iterator[LogReader]:
    """Of topics with one partition and the producers' times."""
    prefix = f"t{uuid4().hex[:8]}."
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    settings = {"message.timestamp.type": "CreateTime"}
    admin.create_topics([NewTopic(prefix + name, 1, 1, None, settings) for name in TOPIC_NAMES])
    admin.close()
    installation = installation_on(kafka.bootstrap_servers, tmp_path, prefix)
    opened = open_reader(installation)
    yield opened
    opened.close()


def test_times_that_fall_within_a_partition_are_those_of_their_records(
    kafka: KafkaService, reader: LogReader
) -> None:
    """Where a time begins says nothing then, so the record itself is read."""
    at = reader.partitions()[0]
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, acks="all")
    times = [EPOCH_START + seconds * SECOND for seconds in (5, 9, 7, 7, 6)]
    for time in times:
        producer.send(
            at.topic, b"{}", timestamp_ms=(time - EPOCH_START) // timedelta(milliseconds=1)
        )
    producer.close()

    for offset, time in enumerate(times):
        assert reader.replaced({at: LastRecord(offset + 1, time)}) == {}
    assert reader.replaced({at: LastRecord(5, EPOCH_START + 8 * SECOND)}) == {at: times[4]}
    assert reader.replaced({at: LastRecord(1, EPOCH_START + 9 * SECOND)}) == {at: times[0]}
    assert reader.replaced({at: LastRecord(6, EPOCH_START + 8 * SECOND)}) == {}


def test_a_marker_is_no_record_in_the_place_of_another(
    kafka: KafkaService, reader: LogReader
) -> None:
    """The position of who has read a transaction's end is behind its marker."""
    at = reader.partitions()[0]
    transactions(kafka, lambda producer: producer.send(at.topic, b"{}"))
    reader.seek({at: 0})
    first, second = reader.poll(1, 10) + reader.poll(1, 10)
    assert (first.offset, second.offset, reader.end_offsets([at])) == (0, 2, {at: 4})

    assert reader.replaced({at: LastRecord(4, second.appended_at)}) == {}
    assert reader.replaced({at: LastRecord(4, second.appended_at - SECOND)}) == {}
    assert reader.replaced({at: LastRecord(3, second.appended_at - SECOND)}) == {
        TopicPartition(*at): second.appended_at
    }
