"""A topic that gets more partitions: streams stay where they are, or nobody continues them."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from producer.emit import Emitter
from producer.errors import MismatchError
from producer.log.kafka_partitions import assigned_partitions
from producer.resume.read_history import read_training_history
from schemas.environment import EnvironmentCreationStarted, EnvironmentRequested
from schemas.event import StreamPoint
from schemas.local_log import partition_of
from tests.producer.log.test_large_records import on_kafka
from tests.support.example_run import TRAINING, TRAINING_CREATED, TRAINING_STREAM
from tests.support.kafka import KafkaService

REQUESTED = EnvironmentRequested(env_type="a", box_type="b", config={})
CREATING = EnvironmentCreationStarted()
KEYS = [f"rollout/{UUID(int=number)}" for number in range(200)]


def placed(keys: list[str], number: int) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for key in keys:
        found.setdefault(partition_of(key, number), []).append(key)
    return found


@pytest.mark.parametrize("number", [12, 16])
def test_the_first_records_of_a_large_topic_tell_whether_it_is_one_of_ours_that_grew(
    number: int,
) -> None:
    assert assigned_partitions(16, placed(KEYS, number)) == number


@pytest.mark.parametrize("size", [1, 5, 12, 16])
def test_a_topic_without_records_or_with_others_keys_is_used_as_it_is(size: int) -> None:
    assert assigned_partitions(size, {}) == size
    assert assigned_partitions(size, {0: ["", "somebody else's"]}) == size


def test_where_both_numbers_fit_the_present_one_is_taken() -> None:
    key = next(key for key in KEYS if partition_of(key, 12) == partition_of(key, 16))
    assert assigned_partitions(16, {partition_of(key, 16): [key]}) == 16


@pytest.mark.parametrize("num_own", [0, 3, 40])
def test_records_that_another_partitioner_placed_change_nothing_and_stop_nobody(
    num_own: int,
) -> None:
    keys = placed(KEYS[:num_own], 12)
    for number in range(300):
        key = f"rollout/{UUID(int=1000 + number)}"
        keys.setdefault((partition_of(key, 12) + 1 + number % 11) % 12, []).append(key)
    assert assigned_partitions(12, keys) == 12


def grow(kafka: KafkaService, topic: str, number: int) -> None:
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    admin.create_partitions({topic: number})
    admin.wait_for_topics([topic])
    admin.close()


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


@pytest.mark.services
def test_streams_stay_whole_in_a_topic_that_grows_under_running_and_later_writers(
    tmp_path: Path, kafka: KafkaService
) -> None:
    prefix = f"t{uuid4().hex}."
    topic = f"{prefix}rollouts"
    subjects = [f"environment/{uuid4()}" for _ in range(40)]
    with Emitter.open(on_kafka(kafka, tmp_path / "a", prefix)) as first:
        for subject in subjects:
            first.stream(subject).emit(REQUESTED)
        first.flush(30)
        first.log.wait_shipped(30)
        grow(kafka, topic, 17)
        for subject in subjects:
            first.stream(subject).emit(CREATING)
        first.flush(30)
        first.log.wait_shipped(30)
    with Emitter.open(on_kafka(kafka, tmp_path / "b", prefix)) as second:
        histories = second.log.read_back_many(subjects, {}, timeout_s=30)
        for subject, history in histories.items():
            assert history.position.point == StreamPoint(1, 2)
            second.stream(subject, history).emit(CREATING)
        new = [f"environment/{uuid4()}" for _ in range(40)]
        for subject in new:
            second.stream(subject).emit(REQUESTED)
        second.flush(30)
        second.log.wait_shipped(30)
        second.log.check_whole(subjects + new)
    found = partitions_of(kafka, topic, 17)
    assert found == {subject: {partition_of(subject, 12)} for subject in subjects + new}


@pytest.mark.services
def test_three_hundred_records_of_a_stranger_stop_no_trainer(
    tmp_path: Path, kafka: KafkaService
) -> None:
    prefix = f"t{uuid4().hex}."
    own = f"environment/{uuid4()}"
    with Emitter.open(on_kafka(kafka, tmp_path / "a", prefix)) as first:
        first.stream(own).emit(REQUESTED)
        first.flush(30)
        first.log.wait_shipped(30)
        value = next(value for _, value in first.log.read_topic("rollouts", {}))
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    for number in range(300):
        # kafka-python's own partitioner, murmur2.
        producer.send(f"{prefix}rollouts", value, f"rollout/{UUID(int=number)}".encode())
    producer.flush(30)
    producer.close()
    with Emitter.open(on_kafka(kafka, tmp_path / "b", prefix)) as second:
        history = second.log.read_back(own, {}, timeout_s=30)
        assert history.position.point == StreamPoint(1, 1)
        second.stream(own, history).emit(CREATING)
        second.flush(30)
        second.log.wait_shipped(30)
        assert second.log.read_back(own, {}).position.point == StreamPoint(2, 1)


@pytest.mark.services
def test_a_training_whose_stream_lies_in_two_partitions_is_not_continued(
    tmp_path: Path, kafka: KafkaService
) -> None:
    prefix = f"t{uuid4().hex}."
    subject, training = f"environment/{uuid4()}", UUID(TRAINING)
    with Emitter.open(on_kafka(kafka, tmp_path, prefix)) as emitter:
        emitter.stream(TRAINING_STREAM).emit(TRAINING_CREATED)
        emitter.stream(subject, training_id=training).emit(REQUESTED)
        emitter.flush(30)
        emitter.log.wait_shipped(30)
        (event,) = emitter.log.read_back(subject, {}).events
        producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
        value = next(value for _, value in emitter.log.read_topic("rollouts", {}))
        other = (partition_of(subject, 12) + 1) % 12
        producer.send(f"{prefix}rollouts", value, subject.encode(), partition=other).get(30)
        producer.close()
        with pytest.raises(MismatchError, match="more partitions"):
            read_training_history(emitter.log, training, start={}, since={})
        read_training_history(emitter.log, uuid4(), start={}, since={})
    assert event.envelope.subject == subject
