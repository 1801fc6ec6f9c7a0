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


@pytest.mark.parametrize("number", [1, 3, 6, 12])
def test_the_first_records_of_a_topic_tell_how_many_partitions_its_keys_have(number: int) -> None:
    assert assigned_partitions("t", 16, placed(KEYS, number)) == number


def test_a_topic_without_records_or_with_others_keys_is_used_as_it_is() -> None:
    assert assigned_partitions("t", 5, {}) == 5
    assert assigned_partitions("t", 5, {3: ["", "somebody else's"]}) == 5


def test_where_several_numbers_fit_the_present_one_is_taken_else_that_of_our_own_topics() -> None:
    key = next(key for key in KEYS if partition_of(key, 12) == 0 == partition_of(key, 6))
    at = partition_of(key, 16)
    assert assigned_partitions("t", 16, {at: [key]}) == 16
    assert at != 0
    assert assigned_partitions("t", 16, {0: [key]}) == 12


def test_streams_that_are_split_already_are_refused() -> None:
    mixed = placed(KEYS[:100], 12)
    for partition, keys in placed(KEYS[100:], 16).items():
        mixed.setdefault(partition, []).extend(keys)
    with pytest.raises(MismatchError, match="CUA_TOPIC_PREFIX"):
        assigned_partitions("t", 16, mixed)


@pytest.mark.parametrize("num_own", [3, 40])
@pytest.mark.parametrize("stray", ["a/b", "rollout/x", KEYS[199], f"dream/{UUID(int=7)}"])
def test_one_record_that_somebody_put_elsewhere_stops_no_trainer(num_own: int, stray: str) -> None:
    keys = placed(KEYS[:num_own], 12)
    keys.setdefault((partition_of(stray, 12) + 1) % 12, []).append(stray)
    assert assigned_partitions("t", 12, keys) == 12


def grow(kafka: KafkaService, topic: str, number: int) -> None:
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    admin.create_partitions({topic: number})
    admin.wait_for_topics([topic])
    admin.close()


def partitions_of(kafka: KafkaService, topic: str, number: int) -> dict[str, set[int]]:
    """Stream -> partitions that have records of it."""
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id=None)
    places = [TopicPartition(topic, one) for one in range(number)]
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
