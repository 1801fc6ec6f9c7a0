"""A new name on Kafka: read once per home, and never missed, whatever the file says."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from producer.errors import MismatchError
from producer.log.kafka import KafkaLog
from producer.log.known_trainings import KnownTrainings, read_own
from producer.log.writer import Coordinates, LogWriter, Record, TopicPartition
from schemas.installation import Installation
from tests.support.kafka import KafkaService

TOPIC = "cua.training"
PLACE = TopicPartition(TOPIC, 0)
NAMES = [f"training/{number}" for number in range(9)]


class OnePartition:
    """A LogWriter of one partition that counts what is read; strict about offsets, as Kafka is."""

    log_id = "kafka-1"

    def __init__(self) -> None:
        self.records: list[tuple[str, bytes]] = []
        self.beginning = 0
        self.num_read = 0

    def append(self, records: Sequence[Record]) -> list[Coordinates]:
        """In order."""
        self.records += [(record.key, record.value) for record in records]
        return []

    def ends(self) -> dict[TopicPartition, int]:
        """Of the one partition."""
        return {PLACE: len(self.records)}

    def place_of(self, topic: str, key: str) -> TopicPartition:
        """The one."""
        assert topic == TOPIC
        assert key
        return PLACE

    def read_partition(
        self, place: TopicPartition, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """From a bound that the partition has."""
        start = since.get(place, self.beginning)
        if not self.beginning <= start <= len(self.records):
            raise MismatchError(str(start))
        self.num_read += len(self.records) - start
        yield from self.records[start:]

    def read_streams(
        self, topic: str, keys: Collection[str], since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """Filtered."""
        place = self.place_of(topic, next(iter(keys)))
        return (one for one in self.read_partition(place, since) if one[0] in keys)

    def read_topic(
        self, topic: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """The one partition."""
        return self.read_partition(self.place_of(topic, "any"), since)

    def read_training(
        self, topic: str, training_id: object, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """All of it."""
        del training_id
        return self.read_topic(topic, since)

    def close(self) -> None:
        """Nothing to release."""


def records(*keys: str) -> list[Record]:
    return [Record(TOPIC, key, key.encode()) for key in keys]


def read(log: LogWriter, name: str, path: Path) -> int:
    found = read_own(log, TOPIC, name, path)
    assert {key for key, _ in found} <= {name}
    return len(found)


def test_a_home_reads_each_record_once_to_know_that_names_are_new(tmp_path: Path) -> None:
    log, path = OnePartition(), tmp_path / "known.json"
    log.append(records(*NAMES[:5]) * 100)
    assert read(log, "training/new", path) == 0
    assert log.num_read == 500
    log.append(records(*NAMES[5:7], "evaluation/1"))
    assert read(log, "training/newer", path) == 0
    assert log.num_read == 503
    assert read(log, "training/newest", path) == 0
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
    assert read(log, "training/new", path) == 0
    log.records = [(key, b"") for key in NAMES[-4:]] if not beginning else [("", b"")] * 7
    log.beginning = beginning
    log.append(records(NAMES[1]) if beginning else [])
    expected = NAMES[1] if beginning else NAMES[-1]
    known = KnownTrainings(path, log.log_id).of(PLACE)
    assert (known.read_to, known.trainings) == (5, frozenset(NAMES[:5]))
    assert read(log, "training/unseen", path) == 0
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
    with closing(KafkaLog(installation, [topic])) as log:
        log.append([Record(topic, name, b"1") for name in NAMES])
        for name in NAMES:
            assert read_own(log, topic, f"{name}0", path) == []
        log.append([Record(topic, name, b"2") for name in NAMES])
        for name in NAMES:
            assert read_own(log, topic, name, path) == [(name, b"1"), (name, b"2")]
            place = log.place_of(topic, name)
            assert name in KnownTrainings(path, log.log_id).of(place).trainings
