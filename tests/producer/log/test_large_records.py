"""Events larger than the log takes: refused by emit; held in the spool where they lie already."""

import base64
import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from kafka import KafkaProducer
from kafka.admin import ConfigResource, KafkaAdminClient
from kafka.errors import MessageSizeTooLargeError

import consumers.garbage.spool as garbage
from consumers.log.open import open_reader
from consumers.log.waiting import read_waiting
from consumers.status import alerts, read_status
from producer.emit import Emitter
from producer.errors import EventTooLargeError, MismatchError
from producer.log.event_log import EventLog
from producer.log.kafka import KafkaLog
from producer.log.local import LocalLog
from producer.log.spool import Spool
from producer.log.writer import Record, RecordRefusedError
from schemas.catalogue import NUM_PARTITIONS
from schemas.environment import EnvironmentRequested
from schemas.installation import Installation
from schemas.kafka_log import (
    MAX_BYTES_SETTING,
    MAX_EVENT_BYTES,
    MAX_MESSAGE_BYTES,
    TOPIC_SETTINGS,
    largest_value,
)
from tests.support.eventually import eventually
from tests.support.kafka import KafkaService
from tests.support.reading import installation_at, installation_on, read_all

BROKERS_DEFAULT = 1_048_588
"""Of message.max.bytes."""
CLOSE_S = 60
"""A close that waits for what cannot be sent takes all of it."""


def environment_of(size: int) -> EnvironmentRequested:
    """A payload of about that many bytes, which LZ4 cannot compress."""
    text = base64.b64encode(os.urandom(3 * size // 4)).decode()
    return EnvironmentRequested(env_type="a", box_type="b", config={"text": text})


def on_kafka(kafka: KafkaService, home: Path, prefix: str) -> Installation:
    return installation_on(kafka.bootstrap_servers, home, prefix)


def test_an_event_that_could_never_be_shipped_is_refused_on_a_local_log_too(
    tmp_path: Path,
) -> None:
    installation = installation_at(tmp_path)
    with Emitter.open(installation) as emitter:
        stream = emitter.stream(f"environment/{uuid4()}")
        with pytest.raises(EventTooLargeError, match="put_blob") as refused:
            stream.emit(environment_of(MAX_EVENT_BYTES))
        assert f"{MAX_EVENT_BYTES:,}" in str(refused.value)
        stream.emit(environment_of(MAX_EVENT_BYTES - 1000)).wait(30)
    (record,) = read_all(installation)
    assert json.loads(record.value)["sequence"] == 1
    assert len(record.value) <= MAX_EVENT_BYTES


@pytest.mark.services
def test_the_largest_event_that_emit_takes_reaches_kafka_and_is_read_on_both_sides(
    tmp_path: Path, kafka: KafkaService
) -> None:
    installation = on_kafka(kafka, tmp_path, f"t{uuid4().hex}.")
    subject = f"environment/{uuid4()}"
    with Emitter.open(installation) as emitter:
        emitter.stream(subject).emit(environment_of(MAX_EVENT_BYTES - 1000))
        emitter.flush(30)
        emitter.log.wait_shipped(60)
        (event,) = emitter.log.read_back(subject, {}).events
        assert isinstance(event.payload, EnvironmentRequested)
    reader = open_reader(installation)
    reader.seek(dict.fromkeys(reader.partitions(), 0))
    values: list[bytes] = []
    deadline = time.monotonic() + 60
    while not values and time.monotonic() < deadline:
        values += [record.value for record in reader.poll(10, 1)]
    reader.close()
    assert MAX_EVENT_BYTES - 2000 < len(values[0]) <= MAX_EVENT_BYTES


@pytest.fixture
def small_topics(kafka: KafkaService) -> str:
    """Topics that exist already, with the broker's own limit; their prefix."""
    prefix = f"t{uuid4().hex}."
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    topics = {f"{prefix}{name}": {"num_partitions": 12} for name in ("training", "rollouts")}
    admin.create_topics(topics, wait_for_metadata=True)
    admin.close()
    return prefix


def let_topic_take(kafka: KafkaService, topic: str, size: int) -> None:
    """Raise its limit to ours; return once it takes a record of `size` bytes.

    The broker acknowledges the alteration before the topic's log applies it, and a shipper whose
    record is refused once more tries again after ten minutes.
    """
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    setting = {MAX_BYTES_SETTING: str(MAX_MESSAGE_BYTES)}
    admin.alter_configs([ConfigResource("TOPIC", topic, setting)])
    admin.close()
    # An idempotent one sends nothing more after a refusal.
    producer = KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers,
        max_request_size=MAX_MESSAGE_BYTES,
        enable_idempotence=False,
    )

    def is_taken() -> bool:
        try:
            producer.send(topic, os.urandom(size), b"probe").get(60)
        except MessageSizeTooLargeError:
            return False
        return True

    eventually(is_taken)
    producer.close()


@pytest.mark.services
def test_a_topic_that_takes_less_is_named_when_it_is_opened_and_emit_keeps_to_its_limit(
    tmp_path: Path, kafka: KafkaService, small_topics: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Emitter.open(on_kafka(kafka, tmp_path, small_topics)) as emitter:
        emitter.log.connect(30)

        def warnings() -> list[str]:
            named = f"topic {small_topics}rollouts takes records"
            return [line for line in caplog.messages if line.startswith(named)]

        eventually(warnings)  # the shipper's thread may be the one that has learnt the limit
        (warning,) = warnings()
        assert f"--add-config max.message.bytes={MAX_MESSAGE_BYTES}" in warning
        stream = emitter.stream(f"environment/{uuid4()}")
        with pytest.raises(EventTooLargeError, match=r"raise the topic's max\.message\.bytes"):
            stream.emit(environment_of(BROKERS_DEFAULT))
        stream.emit(environment_of(largest_value(BROKERS_DEFAULT) - 1000))
        emitter.flush(30)
        emitter.log.wait_shipped(60)
        assert emitter.log.num_unshipped() == 0


@pytest.mark.services
def test_a_record_that_is_too_large_holds_its_own_stream_and_is_sent_once_the_topic_takes_it(
    tmp_path: Path,
    kafka: KafkaService,
    small_topics: str,
    caplog: pytest.LogCaptureFixture,
    migrated_url: str,
) -> None:
    installation = on_kafka(kafka, tmp_path, small_topics)
    topic = f"{small_topics}rollouts"
    held, other = f"rollout/{uuid4()}", f"rollout/{uuid4()}"
    large = base64.b64encode(os.urandom(3 << 20))
    spool = LocalLog(installation.local_log_path, topics=[topic])
    spool.append(
        [Record(topic, held, b"1"), Record(topic, other, b"1"), Record(topic, held, large)]
    )
    spool.append([Record(topic, held, b"3"), Record(topic, other, b"2")])
    spool.close()

    log = EventLog.open(installation)
    log.wait_shipped(60)

    def shipped(key: str) -> list[bytes]:
        return [value for _, value in log.connect(30).read_streams(topic, [key], {})]

    assert shipped(other) == [b"1", b"2"]
    assert shipped(held) == [b"1"]
    assert log.num_unshipped() == 2
    with pytest.raises(MismatchError, match="larger than topic"):
        log.check_not_held(held)
    log.check_not_held(other)
    began = time.monotonic()
    assert log.close(CLOSE_S) == 2
    assert time.monotonic() - began < CLOSE_S  # it is not waited for
    (warning,) = [line for line in caplog.messages if held in line]
    assert f"{len(large):,} bytes" in warning
    assert f"({topic}/" in warning
    assert "offset 1 " in warning or "offset 2 " in warning
    assert any("2 events are not sent" in line for line in caplog.messages)
    check_status_and_gc(installation, migrated_url, held, len(large))

    let_topic_take(kafka, topic, len(large))
    log = EventLog.open(installation)
    eventually(lambda: log.num_unshipped() == 0)
    assert [len(value) for value in shipped(held)] == [1, len(large), 1]
    assert shipped(other) == [b"1", b"2"]
    log.close(20)


def check_status_and_gc(installation: Installation, url: str, held: str, size: int) -> None:
    """`cua-project` names what is held, alerts, and deletes nothing of it."""
    reader = open_reader(installation)
    status = read_status(reader, url, installation=installation, is_brief=True)
    (one,) = status.held_in_spool
    assert one[:4] == (held, f"{installation.topic_prefix}rollouts", 2, size)
    (reason,) = [text for text in alerts(status, timedelta(hours=1)) if text.startswith("not sent")]
    assert held in reason
    path, target = installation.local_log_path, str(reader.log_id)
    reader.close()
    assert read_waiting(path, target, datetime.now(UTC)).num_records == 2
    shipped = garbage.find_shipped(path, target, timedelta(seconds=-1))
    assert (shipped.num_records, garbage.delete_shipped(shipped)) == (3, 3)
    assert read_waiting(path, target, datetime.now(UTC)).num_records == 2


def test_what_a_held_stream_has_in_the_spool_is_never_pruned(tmp_path: Path) -> None:
    log = LocalLog(tmp_path / "log.sqlite3", topics=["cua.rollouts"])
    log.append([Record("cua.rollouts", key, b"1") for key in "abab"])
    spool = Spool(log.path)
    spool.hold("target", "a", 3)
    spool.move("target", 5)
    later = datetime.now(UTC) + timedelta(seconds=1)
    assert spool.num_held("target") == 1
    assert spool.prune("target", timedelta(0), later) == 3
    assert [key for key, _ in log.read_topic("cua.rollouts", {})] == ["a"]
    spool.release("target", "a")
    assert spool.prune("target", timedelta(0), later) == 1
    spool.close()
    log.close()


@pytest.mark.services
def test_what_readers_would_hold_as_unreadable_is_not_sent_whatever_the_topic_takes(
    tmp_path: Path, kafka: KafkaService
) -> None:
    installation = on_kafka(kafka, tmp_path, f"t{uuid4().hex}.")
    topic, key = f"{installation.topic_prefix}rollouts", f"rollout/{uuid4()}"
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    settings = {**TOPIC_SETTINGS, MAX_BYTES_SETTING: str(64 << 20)}
    admin.create_topics(
        {topic: {"num_partitions": NUM_PARTITIONS, "configs": settings}}, wait_for_metadata=True
    )
    admin.close()
    log = KafkaLog(installation, [topic])
    taken, refused = bytes(31 << 20), bytes(33 << 20)
    with pytest.raises(RecordRefusedError, match="larger than any reader takes"):
        log.append([Record(topic, key, taken), Record(topic, key, refused)])
    assert [value for _, value in log.read_topic(topic, {})] == [taken]
    log.close()
