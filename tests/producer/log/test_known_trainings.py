"""A new name on Kafka: read once per home, and never missed, whatever the file says."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from producer.log.kafka import KafkaLog
from producer.log.kafka_history import KafkaHistory, KnownTrainings
from producer.log.kafka_partitions import spans_to_read
from producer.log.training_places import TrainingPlaces
from producer.log.writer import Record, TopicPartition
from schemas.installation import Installation
from tests.support.kafka import KafkaService

TOPIC = "cua.training"
PLACE = TopicPartition(TOPIC, 0)
NAMES = [f"training/{UUID(int=number)}" for number in range(9)]
NEW, NEWER, NEWEST = (f"training/{UUID(int=number)}" for number in (97, 98, 99))


class OnePartition:
    """The part of KafkaLog that is read by offsets; counts records and is as strict."""

    log_id = "kafka-1"

    def __init__(self) -> None:
        self.records: list[tuple[str, bytes]] = []
        self.beginning = 0
        self.num_read = 0

    def append(self, records: Sequence[Record]) -> None:
        """In order."""
        self.records += [(record.key, record.value) for record in records]

    def ends(self) -> dict[TopicPartition, int]:
        """Of the one partition."""
        return {PLACE: len(self.records)}

    def place_of(self, topic: str, key: str) -> TopicPartition:
        """The one."""
        assert topic == TOPIC
        assert key
        return PLACE

    def spans(self, topic: str, since: Mapping[TopicPartition, int]) -> dict[TopicPartition, range]:
        """From a bound that the partition has."""
        assert topic == TOPIC
        return spans_to_read({PLACE: self.beginning}, self.ends(), since)

    def read_within(
        self, spans: Mapping[TopicPartition, Sequence[range]]
    ) -> Iterator[tuple[str, bytes]]:
        """The records at these offsets, which must be there."""
        for offsets in spans.get(PLACE, []):
            assert self.beginning <= offsets.start < offsets.stop <= len(self.records)
            self.num_read += len(offsets)
            yield from self.records[offsets.start : offsets.stop]


def records(*keys: str) -> list[Record]:
    return [Record(TOPIC, key, key.encode()) for key in keys]


def no_tables(training_id: UUID, log_id: str, stop: threading.Event | None) -> TrainingPlaces:
    raise AssertionError((training_id, log_id, stop))  # so few records are not worth a question


def read(log: OnePartition, name: str, path: Path) -> int:
    found = KafkaHistory(path, ask=no_tables).read_own(log, TOPIC, name, {})
    assert {key for key, _ in found} <= {name}
    return len(found)


def test_a_home_reads_each_record_once_to_know_that_names_are_new(tmp_path: Path) -> None:
    log, path = OnePartition(), tmp_path / "known.json"
    log.append(records(*NAMES[:5]) * 100)
    assert read(log, NEW, path) == 0
    assert log.num_read == 500
    log.append(records(*NAMES[5:7], "evaluation/1"))
    assert read(log, NEWER, path) == 0
    assert log.num_read == 503
    assert read(log, NEWEST, path) == 0
    assert log.num_read == 503


def test_a_training_that_others_began_meanwhile_or_before_is_found_whole(tmp_path: Path) -> None:
    log, path = OnePartition(), tmp_path / "known.json"
    log.append(records(*NAMES[:3]) * 2)
    assert read(log, NAMES[8], path) == 0
    log.append(records(NAMES[8], NAMES[0], NAMES[8]))
    assert read(log, NAMES[8], path) == 2
    assert read(log, NAMES[0], path) == 3
    log.append(records(NAMES[8]))
    assert read(log, NAMES[8], path) == 3


@pytest.mark.parametrize("content", ["", "[]", "{", '{"kafka-1": {"cua.training/0": [7]}}'])
def test_a_file_that_is_none_is_no_file(tmp_path: Path, content: str) -> None:
    log, path = OnePartition(), tmp_path / "known.json"
    log.append(records(*NAMES))
    path.write_text(content)
    assert read(log, NAMES[4], path) == 1


def test_what_was_read_of_another_log_says_nothing_about_this_one(tmp_path: Path) -> None:
    log, path = OnePartition(), tmp_path / "known.json"
    KnownTrainings(path, "kafka-2").add(PLACE, 9, ["training/x"])
    log.append(records(*NAMES))
    assert read(log, NAMES[4], path) == 1


@pytest.mark.parametrize("beginning", [0, 7])
def test_a_log_that_lost_what_was_read_is_read_again(tmp_path: Path, beginning: int) -> None:
    log, path = OnePartition(), tmp_path / "known.json"
    log.append(records(*NAMES[:5]))
    assert read(log, NEW, path) == 0
    log.records = [(key, b"") for key in NAMES[-4:]] if not beginning else [("", b"")] * 7
    log.beginning = beginning
    log.append(records(NAMES[1]) if beginning else [])
    expected = NAMES[1] if beginning else NAMES[-1]
    known = KnownTrainings(path, log.log_id).of(PLACE)
    assert (known.read_to, known.trainings) == (5, frozenset(NAMES[:5]))
    assert read(log, NEW, path) == 0
    assert read(log, expected, path) == 1


def test_a_file_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    log, path = OnePartition(), tmp_path / "missing" / "known.json"
    log.append(records(*NAMES))
    for _ in range(2):
        assert read(log, NAMES[4], path) == 1


@pytest.mark.services
def test_on_kafka(kafka: KafkaService, tmp_path: Path) -> None:
    prefix = f"known{abs(hash(tmp_path))}."
    home = str(tmp_path / "blobs")
    installation = Installation(tmp_path, prefix, kafka.bootstrap_servers, (), home)
    topic, path = prefix + "training", tmp_path / "known.json"
    history = KafkaHistory(path, ask=no_tables)
    with closing(KafkaLog(installation, [topic])) as log:
        log.append([Record(topic, name, b"1") for name in NAMES])
        for _ in NAMES:
            assert history.read_own(log, topic, f"training/{uuid4()}", {}) == []
        log.append([Record(topic, name, b"2") for name in NAMES])
        for name in NAMES:
            assert history.read_own(log, topic, name, {}) == [(name, b"1"), (name, b"2")]
            place = log.place_of(topic, name)
            assert name in KnownTrainings(path, log.log_id).of(place).trainings
