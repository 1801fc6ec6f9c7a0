"""Topics that others change: grown, deleted, compressed, with records of strangers."""

import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, KafkaAdminClient

from consumers.errors import MismatchError as ReaderMismatchError
from consumers.log.open import open_reader
from consumers.log.reader import LogReader, LogRecord
from producer.emit import Emitter
from producer.errors import MismatchError
from producer.log.append_decisions import append_decisions
from producer.log.kafka import KafkaLog
from producer.resume.training_history import read_training_history
from schemas.catalogue import NUM_PARTITIONS, TOPIC_NAMES
from schemas.event import StreamPoint
from schemas.home import home_partition
from schemas.installation import Installation
from tests.support.emitting import CREATING, REQUESTED, new_subject
from tests.support.example_run import TRAINING, TRAINING_CREATED, TRAINING_STREAM
from tests.support.kafka import KafkaService
from tests.support.reading import installation_on


@pytest.fixture
def prefix() -> str:
    return f"t{uuid4().hex}."


@pytest.fixture
def home(kafka: KafkaService, prefix: str, tmp_path: Path) -> Installation:
    return installation_on(kafka.bootstrap_servers, tmp_path, prefix)


@pytest.fixture
def other_home(kafka: KafkaService, prefix: str, tmp_path: Path) -> Installation:
    return installation_on(kafka.bootstrap_servers, tmp_path / "another", prefix)


@pytest.fixture
def admin(kafka: KafkaService) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    yield client
    client.close()


@pytest.fixture
def stranger(kafka: KafkaService) -> Iterator[KafkaProducer]:
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    yield producer
    producer.close()


def ship(emitter: Emitter) -> None:
    emitter.flush(30)
    emitter.log.wait_shipped(30)


def partitions_of(kafka: KafkaService, topic: str, number: int) -> dict[str, set[int]]:
    """Stream -> partitions that have records of it."""
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id=None)
    places = [TopicPartition(topic, index) for index in range(number)]
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    left = sum(consumer.end_offsets(places).values())
    found: dict[str, set[int]] = {}
    while left > 0:
        for at, records in consumer.poll(1000).items():
            left -= len(records)
            for record in records:
                found.setdefault(record.key.decode(), set()).add(at.partition)
    consumer.close()
    return found


def test_streams_stay_whole_in_a_topic_that_grows_under_running_and_later_writers(
    home: Installation, other_home: Installation, admin: KafkaAdminClient, kafka: KafkaService
) -> None:
    topic = f"{home.topic_prefix}rollouts"
    subjects = [new_subject() for _ in range(40)]
    with Emitter.open(home) as first:
        for subject in subjects:
            first.stream(subject).emit(REQUESTED)
        ship(first)
        admin.create_partitions({topic: 17})
        admin.wait_for_topics([topic])
        for subject in subjects:
            first.stream(subject).emit(CREATING)
        ship(first)
    with Emitter.open(other_home) as second:
        histories = second.log.read_back_many(subjects, {}, timeout_s=30)
        for subject, history in histories.items():
            assert history.position.point == StreamPoint(1, 2)
            second.stream(subject, history).emit(CREATING)
        new = [new_subject() for _ in range(40)]
        for subject in new:
            second.stream(subject).emit(REQUESTED)
        ship(second)
    found = partitions_of(kafka, topic, 17)
    assert found == {subject: {home_partition(subject, 12)} for subject in subjects + new}


def test_three_hundred_records_of_a_stranger_stop_no_trainer(
    home: Installation, other_home: Installation, stranger: KafkaProducer
) -> None:
    own = new_subject()
    with Emitter.open(home) as first:
        first.stream(own).emit(REQUESTED)
        ship(first)
        value = next(value for _, value in first.log.read_topic("rollouts", {}))
    for number in range(300):
        # kafka-python's own partitioner, murmur2.
        key = f"rollout/{UUID(int=number)}".encode()
        stranger.send(f"{home.topic_prefix}rollouts", value, key)
    stranger.flush(30)
    with Emitter.open(other_home) as second:
        history = second.log.read_back(own, {}, timeout_s=30)
        assert history.position.point == StreamPoint(1, 1)
        second.stream(own, history).emit(CREATING)
        ship(second)
        assert second.log.read_back(own, {}).position.point == StreamPoint(2, 1)


def test_a_training_is_continued_beside_foreign_records_of_its_streams(
    home: Installation, stranger: KafkaProducer
) -> None:
    subject, training = new_subject(), UUID(TRAINING)
    with Emitter.open(home) as emitter:
        emitter.stream(TRAINING_STREAM).emit(TRAINING_CREATED)
        emitter.stream(subject, training_id=training).emit(REQUESTED)
        ship(emitter)
        value = next(value for _, value in emitter.log.read_topic("rollouts", {}))
        other = (home_partition(subject, 12) + 1) % 12
        topic = f"{home.topic_prefix}rollouts"
        stranger.send(topic, b"garbage", subject.encode(), partition=other).get(30)
        stranger.send(topic, value, subject.encode(), partition=other).get(30)

        history = read_training_history(emitter.log, training, start={}, since={})

        assert history.streams[subject].position.point == StreamPoint(1, 1)
        assert len(list(emitter.log.read_topic("rollouts", {}))) == 1


def _ship_for(seconds: int, emitter: Emitter) -> None:
    for _ in range(seconds):
        emitter.stream(new_subject()).emit(REQUESTED)
        ship(emitter)
        time.sleep(1)


def _look_for(seconds: int, reader: LogReader) -> None:
    for _ in range(seconds):
        reader.poll(10, 1.0)
        reader.partitions()


def test_a_small_topic_that_grows_is_another_log_that_every_sender_and_reader_refuses(
    home: Installation, admin: KafkaAdminClient
) -> None:
    sizes = {f"{home.topic_prefix}rollouts": 3, f"{home.topic_prefix}training": 12}
    wanted = {topic: {"num_partitions": size} for topic, size in sizes.items()}
    admin.create_topics(wanted, wait_for_metadata=True)
    topic = f"{home.topic_prefix}rollouts"
    says = "topic rollouts had 3 partitions and has 5 now"
    reader = open_reader(home)
    before = reader.log_id
    reader.seek(dict.fromkeys(reader.partitions(), 0))
    subject = new_subject()
    with Emitter.open(home) as emitter:
        emitter.stream(subject).emit(REQUESTED)
        ship(emitter)
        admin.create_partitions({topic: 5})
        admin.wait_for_topics([topic])
        emitter.stream(new_subject()).emit(REQUESTED)
        with pytest.raises(MismatchError, match=says):
            _ship_for(30, emitter)
    with Emitter.open(home) as emitter, pytest.raises(MismatchError, match=says):
        emitter.log.wait_shipped(30)
    with pytest.raises(MismatchError, match=says):
        append_decisions(home, [], before)
    with pytest.raises(ReaderMismatchError, match=says):
        _look_for(60, reader)
    reader.close()
    again = open_reader(home)
    assert again.log_id == before.replace("rollouts=3", "rollouts=5")
    again.close()


def test_topics_deleted_under_a_sender_are_made_again_as_ours_are_and_get_every_event(
    home: Installation, admin: KafkaAdminClient
) -> None:
    """The broker would make them with one partition and a week's retention (its defaults)."""
    topics = [home.topic_prefix + name for name in TOPIC_NAMES]
    subject = new_subject()
    with Emitter.open(home) as emitter:
        stream = emitter.stream(subject)
        stream.emit(REQUESTED)
        stream.emit(CREATING)
        ship(emitter)
        admin.delete_topics(topics)

        for _ in range(8):
            stream.emit(CREATING)
        emitter.flush(10)

        with pytest.raises(MismatchError, match="deleted and made again while this process ran"):
            emitter.log.wait_shipped(60)
    with Emitter.open(home) as emitter:
        emitter.log.wait_shipped(30)
        history = emitter.log.read_back(subject, {})
        assert history.position.point == StreamPoint(1, 10)
        assert not history.waiting
    check_ours(admin, topics)


def check_ours(admin: KafkaAdminClient, topics: list[str]) -> None:
    """Everything is kept for ever, and the broker's clock stamps it."""
    assert {len(topic["partitions"]) for topic in admin.describe_topics(topics)} == {NUM_PARTITIONS}
    described = admin.describe_configs([ConfigResource("TOPIC", topic) for topic in topics])
    for settings in described["topic"].values():
        assert settings["retention.ms"]["value"] == "-1"
        assert settings["message.timestamp.type"]["value"] == "LogAppendTime"


def test_topics_that_we_make_keep_everything_and_are_stamped_by_the_broker(
    home: Installation, admin: KafkaAdminClient
) -> None:
    with Emitter.open(home) as emitter:
        emitter.log.connect(30)
    check_ours(admin, [home.topic_prefix + name for name in TOPIC_NAMES])


def test_topics_that_exist_are_used_as_they_are(
    home: Installation, admin: KafkaAdminClient
) -> None:
    sizes = {f"{home.topic_prefix}rollouts": 3, f"{home.topic_prefix}training": 1}
    wanted = {topic: {"num_partitions": size} for topic, size in sizes.items()}
    admin.create_topics(wanted, wait_for_metadata=True)
    subjects = [new_subject() for _ in range(20)]
    with Emitter.open(home) as emitter:
        for subject in subjects:
            emitter.stream(subject).emit(REQUESTED)
        emitter.log.wait_shipped(30)
        assert all(emitter.log.read_back(subject, {}).exists for subject in subjects)
    reader = open_reader(home)
    assert [place.partition for place in reader.partitions()] == [0, 1, 2, 0]
    assert sum(reader.end_offsets(reader.partitions()).values()) == 20
    reader.close()


def test_who_appends_a_decision_makes_no_topic(home: Installation, admin: KafkaAdminClient) -> None:
    with pytest.raises(MismatchError, match=f"has no topic {home.topic_prefix}"):
        append_decisions(home, [])
    assert not [name for name in admin.list_topics() if name.startswith(home.topic_prefix)]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_topic_may_have_any_compression(
    home: Installation, admin: KafkaAdminClient, stranger: KafkaProducer, codec: str
) -> None:
    """The broker compresses again what a client sent otherwise."""
    topic = f"{home.topic_prefix}rollouts"
    log = KafkaLog(home)
    admin.alter_configs([ConfigResource("TOPIC", topic, configs={"compression.type": codec})])
    key, value = f"rollout/{uuid4()}", b"compressible " * 100
    stranger.send(topic, value, key.encode(), partition=home_partition(key, 12)).get(30)
    reader = open_reader(home)
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
    home: Installation, other_home: Installation, stranger: KafkaProducer
) -> None:
    own = UUID(TRAINING)
    with Emitter.open(home) as emitter:
        emitter.stream(TRAINING_STREAM).emit(TRAINING_CREATED)
        ship(emitter)
    other = f"rollout/{uuid4()}"
    garbled = b"no event of " + TRAINING.encode()
    for topic in ("training", "rollouts"):
        for key, value in ((b"x/y", None), (b"\xff", None), (other.encode(), garbled)):
            for partition in range(12):
                stranger.send(f"{home.topic_prefix}{topic}", value, key, partition=partition)
    stranger.flush(30)

    with Emitter.open(other_home) as emitter:
        history = read_training_history(emitter.log, own, start={}, since={})
        new = read_training_history(emitter.log, uuid4(), start={}, since={})

    assert list(history.streams) == [TRAINING_STREAM]
    assert len(history.own.events) == 1
    assert not new.streams
