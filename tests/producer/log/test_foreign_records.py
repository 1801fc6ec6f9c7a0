"""What others leave in our topics, and how they compress it, stops no trainer and no projector."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest
from kafka import KafkaProducer
from kafka.admin import ConfigResource, KafkaAdminClient

from consumers.log.open import open_reader
from consumers.log.reader import LogRecord
from producer.emit import Emitter
from producer.log.kafka import KafkaLog
from producer.resume.read_history import read_training_history
from schemas.local_log import partition_of
from tests.producer.log.test_large_records import on_kafka
from tests.support.example_run import TRAINING, TRAINING_CREATED, TRAINING_STREAM
from tests.support.kafka import KafkaService

pytestmark = pytest.mark.services


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_topic_may_have_any_compression(tmp_path: Path, kafka: KafkaService, codec: str) -> None:
    """The broker compresses again what a client sent otherwise."""
    prefix = f"t{uuid4().hex}."
    installation, topic = on_kafka(kafka, tmp_path, prefix), f"{prefix}rollouts"
    log = KafkaLog(installation, [f"{prefix}training", topic])
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    change = ConfigResource("TOPIC", topic, configs={"compression.type": codec})
    admin.alter_configs([change])
    admin.close()
    key, value = f"rollout/{uuid4()}", b"compressible " * 100
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    producer.send(topic, value, key.encode(), partition=partition_of(key, 12)).get(30)
    producer.close()
    reader = open_reader(installation)
    reader.seek(dict.fromkeys(reader.partitions(), 0))
    records: list[LogRecord] = []
    for _ in range(20):
        records += reader.poll(10, 0.5)
        if records:
            break
    reader.close()

    assert [(record.key, record.value) for record in records] == [(key, value)]
    assert list(log.read_topic(topic, {})) == [(key, value)]
    log.close()


def test_a_training_is_continued_beside_tombstones_and_strays(
    tmp_path: Path, kafka: KafkaService
) -> None:
    prefix = f"t{uuid4().hex}."
    own = UUID(TRAINING)
    with Emitter.open(on_kafka(kafka, tmp_path, prefix)) as emitter:
        emitter.stream(TRAINING_STREAM).emit(TRAINING_CREATED)
        emitter.flush(30)
        emitter.log.wait_shipped(30)
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    other = f"rollout/{uuid4()}"
    garbled = b"no event of " + TRAINING.encode()
    for topic in ("training", "rollouts"):
        for key, value in ((b"x/y", None), (b"\xff", None), (other.encode(), garbled)):
            for partition in range(12):
                producer.send(f"{prefix}{topic}", value, key, partition=partition)
    producer.flush(30)
    producer.close()

    with Emitter.open(on_kafka(kafka, tmp_path / "another home", prefix)) as emitter:
        history = read_training_history(emitter.log, own, start={}, since={})
        new = read_training_history(emitter.log, uuid4(), start={}, since={})

    assert list(history.streams) == [TRAINING_STREAM]
    assert len(history.training_stream(own).events) == 1
    assert not new.streams
