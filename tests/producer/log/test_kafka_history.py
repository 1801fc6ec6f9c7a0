"""A training's records in Kafka: none is missed, and no more is read than is needed."""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.log.kafka import KafkaLog
from producer.log.kafka_history import (
    ASK_ABOVE,
    KafkaHistory,
    KnownTrainings,
    TrainingPlaces,
    read_answer,
)
from producer.log.kafka_reading import read_spans, spans_to_read
from producer.log.project_command import NoAnswerError
from producer.log.stream_history import StreamHistory
from producer.log.writer import Coordinates, Record, TopicPartition
from schemas.event import StreamPoint
from schemas.installation import Installation
from tests.support.kafka import KafkaService

TOPIC = "cua.training"
PLACE = TopicPartition(TOPIC, 0)
NAMES = [f"training/{UUID(int=number)}" for number in range(9)]
NEW, NEWER, NEWEST = (f"training/{UUID(int=number)}" for number in (97, 98, 99))
OWN = UUID(int=7)
SUBJECT = f"training/{OWN}"
OTHERS = [f"evaluation/{UUID(int=number)}" for number in range(100, 150)]
NONE = (0, 0)


class OnePartition(KafkaLog):
    """A log in memory that is read by offsets; counts records and is as strict."""

    def __init__(self) -> None:
        self.records: list[tuple[str, bytes]] = []
        self.beginning = 0
        self.num_read = 0
        self.num_asked_for_ends = 0

    @property
    def log_id(self) -> str:
        return "kafka-1"

    def append(self, records: Sequence[Record]) -> list[Coordinates]:
        self.records += [(record.key, record.value) for record in records]
        return []

    def ends(self) -> dict[TopicPartition, int]:
        self.num_asked_for_ends += 1
        return {PLACE: len(self.records)}

    def place_of(self, topic: str, key: str) -> TopicPartition:
        assert topic == TOPIC
        assert key
        return PLACE

    def spans(self, topic: str, since: Mapping[TopicPartition, int]) -> dict[TopicPartition, range]:
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


def num_found(log: OnePartition, name: str, path: Path) -> int:
    found = KafkaHistory(path, ask=no_tables).read_own(log, TOPIC, name, {})
    assert {key for key, _ in found} <= {name}
    return len(found)


def test_a_home_reads_each_record_once_to_know_that_names_are_new(tmp_path: Path) -> None:
    log, path = OnePartition(), tmp_path / "known.json"
    log.append(records(*NAMES[:5]) * 100)
    assert num_found(log, NEW, path) == 0
    assert log.num_read == 500
    log.append(records(*NAMES[5:7], "evaluation/1"))
    assert num_found(log, NEWER, path) == 0
    assert log.num_read == 503
    assert num_found(log, NEWEST, path) == 0
    assert log.num_read == 503


def test_a_training_that_others_began_meanwhile_or_before_is_found_whole(tmp_path: Path) -> None:
    log, path = OnePartition(), tmp_path / "known.json"
    log.append(records(*NAMES[:3]) * 2)
    assert num_found(log, NAMES[8], path) == 0
    log.append(records(NAMES[8], NAMES[0], NAMES[8]))
    assert num_found(log, NAMES[8], path) == 2
    assert num_found(log, NAMES[0], path) == 3
    log.append(records(NAMES[8]))
    assert num_found(log, NAMES[8], path) == 3


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", "{", '{"kafka-1": {"cua.training/0": [7]}}'),
        # What was read of another log says nothing about this one.
        '{"kafka-2": {"cua.training/0": [9, ["training/x"]]}}',
    ],
)
def test_a_file_that_is_none_is_no_file(tmp_path: Path, content: str) -> None:
    log, path = OnePartition(), tmp_path / "known.json"
    log.append(records(*NAMES))
    path.write_text(content)
    assert num_found(log, NAMES[4], path) == 1


@pytest.mark.parametrize("beginning", [0, 7])
def test_a_log_that_lost_what_was_read_is_read_again(tmp_path: Path, beginning: int) -> None:
    log, path = OnePartition(), tmp_path / "known.json"
    log.append(records(*NAMES[:5]))
    assert num_found(log, NEW, path) == 0
    log.records = [(key, b"") for key in NAMES[-4:]] if not beginning else [("", b"")] * 7
    log.beginning = beginning
    log.append(records(NAMES[1]) if beginning else [])
    expected = NAMES[1] if beginning else NAMES[-1]
    known = KnownTrainings(path, log.log_id).of(PLACE)
    assert (known.read_to, known.trainings) == (5, frozenset(NAMES[:5]))
    assert num_found(log, NEW, path) == 0
    assert num_found(log, expected, path) == 1


def test_a_file_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    log, path = OnePartition(), tmp_path / "missing" / "known.json"
    log.append(records(*NAMES))
    for _ in range(2):
        assert num_found(log, NAMES[4], path) == 1


@pytest.mark.services
def test_on_kafka(kafka: KafkaService, tmp_path: Path) -> None:
    prefix = f"known{abs(hash(tmp_path))}."
    home = str(tmp_path / "blobs")
    installation = Installation(tmp_path, prefix, kafka.bootstrap_servers, (), home)
    topic, path = prefix + "training", tmp_path / "known.json"
    history = KafkaHistory(path, ask=no_tables)
    with closing(KafkaLog(installation, [topic])) as log:
        log.append([Record(topic, name, b"1") for name in NAMES])
        for _ in range(3):
            assert history.read_own(log, topic, f"training/{uuid4()}", {}) == []
        log.append([Record(topic, name, b"2") for name in NAMES])
        for name in NAMES[:3]:
            assert history.read_own(log, topic, name, {}) == [(name, b"1"), (name, b"2")]
            place = log.place_of(topic, name)
            assert name in KnownTrainings(path, log.log_id).of(place).trainings


class Tables:
    """Answers as often as it is asked, and counts."""

    def __init__(self, answer: TrainingPlaces | None) -> None:
        self.answer = answer
        self.num_asked = 0

    def __call__(
        self, training_id: UUID, log_id: str, stop: threading.Event | None
    ) -> TrainingPlaces:
        """The answer; without one the error that there is none."""
        assert (training_id, log_id, stop) == (OWN, "kafka-1", None)
        self.num_asked += 1
        if self.answer is None:
            message = "no database"
            raise NoAnswerError(message)
        return self.answer


def answer(read_to: int, *found: range, reached: tuple[int, int] = NONE) -> TrainingPlaces:
    return TrainingPlaces({PLACE: range(read_to)}, {PLACE: list(found)}, reached)


def long_log(num_records: int, *own: int) -> OnePartition:
    """A partition of others' records, with the training's own at these offsets."""
    log = OnePartition()
    keys = [OTHERS[number % len(OTHERS)] for number in range(num_records)]
    for offset in own:
        keys[offset] = SUBJECT
    log.append([Record(TOPIC, key, b"%d" % number) for number, key in enumerate(keys)])
    return log


def read(log: OnePartition, tables: Tables, path: Path) -> list[tuple[str, bytes]]:
    return KafkaHistory(path, ask=tables).read_own(log, TOPIC, SUBJECT, {})


def test_a_new_name_costs_what_the_tables_have_not_read_however_long_the_log(
    tmp_path: Path,
) -> None:
    for num_records in (ASK_ABOVE + 1, 10 * ASK_ABOVE):
        log, tables = long_log(num_records), Tables(answer(num_records - 30))
        assert read(log, tables, tmp_path / "known") == []
        assert (log.num_read, tables.num_asked) == (30, 1)


def test_a_resume_costs_its_own_blocks_and_what_the_tables_have_not_read(tmp_path: Path) -> None:
    own = (1_030, 90_000, 149_999)
    log = long_log(150_000, *own)
    tables = Tables(answer(149_000, range(1_024, 2_048), range(89_088, 90_112)))
    history = KafkaHistory(tmp_path / "known", ask=tables)
    expected = [(SUBJECT, b"%d" % offset) for offset in own]
    assert history.read_own(log, TOPIC, SUBJECT, {}) == expected
    assert log.num_read == 1_024 + 1_024 + 1_000
    every = list(history.read_training(log, TOPIC, OWN, {}))
    assert [item for item in every if item[0] == SUBJECT] == expected
    assert tables.num_asked == 1


def test_a_short_log_is_read_without_a_question(tmp_path: Path) -> None:
    log, tables = long_log(ASK_ABOVE, 5), Tables(None)
    assert len(read(log, tables, tmp_path / "known")) == 1
    assert (log.num_read, tables.num_asked) == (ASK_ABOVE, 0)


@pytest.mark.parametrize("wrong", [None, answer(60_000), answer(70_000)])
def test_without_an_answer_about_this_log_all_of_it_is_read_and_one_line_says_so(
    wrong: TrainingPlaces | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log, tables = long_log(50_000, 0, 49_999), Tables(wrong)
    history = KafkaHistory(tmp_path / "known", ask=tables)
    with caplog.at_level(logging.INFO):
        assert len(history.read_own(log, TOPIC, SUBJECT, {})) == 2
        assert len(list(history.read_training(log, TOPIC, OWN, {}))) == 50_000
    assert log.num_read == 100_000
    assert tables.num_asked == 1
    (said,) = caplog.messages
    assert said.startswith("reading Kafka's log from its beginning, because the tables cannot say")


def test_tables_that_read_on_while_they_were_asked_are_believed(tmp_path: Path) -> None:
    log = long_log(50_000)

    def append_and_answer(*_: object) -> TrainingPlaces:
        log.append([Record(TOPIC, OTHERS[0], b"")] * 40)
        return answer(50_040)

    history = KafkaHistory(tmp_path / "known", ask=append_and_answer)
    assert history.read_own(log, TOPIC, SUBJECT, {}) == []
    assert log.num_read == 0


def test_the_ends_are_asked_for_once_where_nothing_changed_meanwhile(tmp_path: Path) -> None:
    log = long_log(50_000)
    assert read(log, Tables(answer(50_000)), tmp_path / "known") == []
    # Of the spans alone.
    assert log.num_asked_for_ends == 1


def test_tables_that_have_more_of_the_training_than_was_found_are_not_believed_twice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log, tables = long_log(50_000, 3), Tables(answer(50_000, reached=(1, 1)))
    history = KafkaHistory(tmp_path / "known", ask=tables)
    assert history.read_own(log, TOPIC, SUBJECT, {}) == []
    with caplog.at_level(logging.INFO):
        assert not history.agrees(StreamHistory(SUBJECT))
    assert "up to epoch 1, sequence 1" in caplog.text
    assert len(history.read_own(log, TOPIC, SUBJECT, {})) == 1
    assert history.agrees(StreamHistory(SUBJECT))
    assert tables.num_asked == 1


def test_tables_that_were_never_asked_contradict_nothing(tmp_path: Path) -> None:
    history = StreamHistory(SUBJECT)
    assert StreamPoint(0, 0) == history.position.point
    assert KafkaHistory(tmp_path / "known", ask=Tables(None)).agrees(history)


def test_a_part_that_was_read_is_not_remembered_as_all(tmp_path: Path) -> None:
    """The tables said that OWN is not there; of the others the home has seen nothing."""
    log, tables = long_log(50_000), Tables(answer(50_000))
    log.records[4] = (f"training/{UUID(int=8)}", b"")
    path = tmp_path / "known"
    assert read(log, tables, path) == []
    other = KafkaHistory(path, ask=lambda *_: answer(0))
    assert len(other.read_own(log, TOPIC, f"training/{UUID(int=8)}", {})) == 1


@given(st.integers(0, 10_000))
def test_whatever_is_indexed_no_record_of_the_training_is_missed(seed: int) -> None:
    random = Random(seed)
    num_records = random.randint(1, 40_000)
    own = {random.randrange(num_records) for _ in range(random.randint(0, 9))}
    begin = random.choice([0, random.randint(0, num_records)])
    end = random.randint(begin, num_records)
    blocks = sorted({offset // 1_024 for offset in own if begin <= offset < end})
    found = [range(max(begin, 1_024 * n), min(end, 1_024 * (n + 1))) for n in blocks]
    places = TrainingPlaces({PLACE: range(begin, end)}, {PLACE: found}, NONE)
    span = range(random.randint(0, num_records), num_records)
    within = places.within(PLACE, span)
    assert covered(within) >= own.intersection(span)
    assert all(span.start <= item.start < item.stop <= span.stop for item in within)
    assert all(one.stop < other.start for one, other in pairwise(within))
    elsewhere = TopicPartition(TOPIC, 1)
    assert covered(places.within(elsewhere, span)) == set(span)


def covered(ranges: Sequence[range]) -> set[int]:
    return {offset for part in ranges for offset in part}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"log_id": 1}', '{"partitions": 7}'])
def test_an_answer_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(NoAnswerError, match="cannot read"):
        read_answer(text)


class Read(NamedTuple):
    """A record, as far as a range is concerned."""

    offset: int


class LongLog:
    """A consumer of endless partitions, of which one answers at a time; counts what it decodes."""

    def __init__(self) -> None:
        self.num_decoded = 0
        self._positions: dict[str, int] = {}
        self._paused: set[str] = set()

    def assign(self, partitions: list[str]) -> None:
        """Nothing is known of them before `seek`."""
        self._positions = dict.fromkeys(partitions, -1)

    def seek(self, at: str, offset: int) -> None:
        """The next record."""
        self._positions[at] = offset

    def position(self, at: str) -> int:
        """The next record's offset."""
        return self._positions[at]

    def pause(self, at: str) -> None:
        """It answers no more."""
        self._paused.add(at)

    def poll(self, timeout_ms: int, max_records: int) -> dict[str, list[Read]]:
        """As many as are asked for."""
        assert timeout_ms > 0
        assert max_records > 0
        at = next(position for position in self._positions if position not in self._paused)
        start = self._positions[at]
        self._positions[at] = start + max_records
        self.num_decoded += max_records
        return {at: [Read(offset) for offset in range(start, start + max_records)]}


def test_of_two_short_ranges_far_apart_hardly_more_than_them_is_decoded() -> None:
    log = LongLog()
    spans = {"a": [range(128, 256), range(900_000, 900_100)], "b": [range(50)]}
    found = {at: set[int]() for at in spans}
    for at, records in read_spans(log, spans, 5.0):
        found[at].update(record.offset for record in records)
    assert found == {"a": {*range(128, 256), *range(900_000, 900_100)}, "b": set(range(50))}
    assert log.num_decoded == 128 + 100 + 50
