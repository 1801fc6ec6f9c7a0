"""What is read of Kafka for one training: all that may be its own, and no more than is needed."""

import logging
import threading
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.log.kafka_history import ASK_ABOVE, KafkaHistory
from producer.log.project_command import NoAnswerError
from producer.log.stream_history import StreamHistory
from producer.log.training_places import TrainingPlaces, read_answer
from producer.log.writer import Record, TopicPartition
from schemas.event import StreamPoint
from tests.producer.log.test_known_trainings import PLACE, TOPIC, OnePartition

OWN = UUID(int=7)
SUBJECT = f"training/{OWN}"
OTHERS = [f"evaluation/{UUID(int=number)}" for number in range(100, 150)]
NONE = (0, 0)


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
    num_asked = 0

    class Counting(OnePartition):
        """Counts the questions that cost a connection."""

        def ends(self) -> dict[TopicPartition, int]:
            nonlocal num_asked
            num_asked += 1
            return super().ends()

    counting = Counting()
    counting.records = log.records
    assert read(counting, Tables(answer(50_000)), tmp_path / "known") == []
    # Of the spans alone.
    assert num_asked == 1


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
