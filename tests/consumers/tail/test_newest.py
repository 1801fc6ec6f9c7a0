"""`tail` of one training or stream reads where that is, `tail -n N` from the end.

Either prints what looking at every record would print.
"""

import io
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from consumers.log.kafka import KafkaLogReader
from consumers.log.local import LocalLogReader
from consumers.log.reader import LogReader, LogRecord
from consumers.tail.cursor import Cursor
from consumers.tail.event_filter import EventFilter
from consumers.tail.formats import json_line
from consumers.tail.offsets import parse_offset
from consumers.tail.session import TailRequest, TailSession
from producer.log.kafka import KafkaLog
from producer.log.local import LocalLog
from producer.log.writer import Record
from schemas import ids
from schemas.catalogue import TOPIC_NAMES, topic_of
from schemas.installation import Installation
from tests.support.counting_reader import CountingReader
from tests.support.kafka import KafkaService
from tests.support.logs import logged_events
from tests.support.reading import installation_at

NAMES = ("first", "second", "third")
NUM_ROUNDS = 3


@cache
def records(num_rounds: int = NUM_ROUNDS) -> tuple[Record, ...]:
    """Several trainings, a stranger's event under another key, and garbage."""
    made = [
        Record(topic_of(event.subject, "cua."), event.subject, event.value)
        for number in range(num_rounds)
        for event in logged_events(*NAMES, seed=number)
    ]
    made[len(made) // 2] = made[-1]._replace(key=made[0].key)
    made[-40] = made[-40]._replace(value=b"garbage")
    return tuple(made)


def write(installation: Installation, *, is_indexed: bool, made: Sequence[Record]) -> None:
    log = LocalLog(installation.local_log_path, is_indexed=is_indexed)
    with closing(log):
        for start in range(0, len(made), 50):
            log.append(made[start : start + 50])


class EverywhereFilter(EventFilter):
    """Has every record looked at."""

    def places(self) -> None:
        """Anywhere."""


def everywhere(one: EventFilter) -> EventFilter:
    return EverywhereFilter(one.training_id, one.stream, one.types)


def last(
    reader: LogReader,
    event_filter: EventFilter,
    number: int | None,
    wanted: Mapping[str, range] | None = None,
    offset: str | None = None,
) -> list[bytes]:
    request = TailRequest(
        None if offset is None else parse_offset(offset, datetime.now(UTC)),
        number,
        follow=False,
        event_filter=event_filter,
        is_wanted=lambda tp: wanted is None or tp.partition in wanted.get(tp.topic, range(0)),
    )
    out = io.BytesIO()
    TailSession(reader, request, json_line, out, None).run()
    return out.getvalue().splitlines()


@pytest.mark.parametrize("written_by", ["the log", "a spool", "both"])
def test_the_last_records_are_those_that_reading_everything_ends_with(
    tmp_path: Path, written_by: str
) -> None:
    # Two: some partitions have more records than are read at once.
    installation, made = installation_at(tmp_path), records(2)
    middle = {"the log": len(made), "a spool": 0, "both": len(made) - 500}[written_by]
    write(installation, is_indexed=True, made=made[:middle])
    write(installation, is_indexed=False, made=made[middle:])
    stream = made[-1].key
    filters = [
        EventFilter(),
        *(EventFilter(training_id=ids.training_id(name)) for name in (*NAMES, "unknown")),
        *(EventFilter(stream=glob) for glob in (stream, made[0].key, "rollout/*", "rollout/none")),
        EventFilter(types=("rollout.finished", "*.failed")),
        EventFilter(training_id=ids.training_id("first"), stream="training/*", types=("step.*",)),
        EventFilter(training_id=ids.training_id("first"), stream=stream),
    ]
    places = [None, {"cua.training": range(12)}, {"cua.rollouts": range(3, 5)}]
    reader = LocalLogReader(installation.local_log_path, topic_prefix="cua.")
    with closing(reader):
        for event_filter in filters:
            for wanted in places:
                everything = last(reader, everywhere(event_filter), None, wanted)
                for number in (1, 30, 10_000):
                    found = last(reader, event_filter, number, wanted)
                    assert found == everything[-number:], (event_filter, wanted, number)
                assert last(reader, event_filter, None, wanted) == everything
            everything = last(reader, everywhere(event_filter), None, None, "10:30")
            assert last(reader, event_filter, None, None, "10:30") == everything
            assert last(reader, event_filter, 20, None, "10:30") == everything[:20]


RARE = EventFilter(training_id=ids.training_id("rare"))


TAILS = (
    (EventFilter(), 5, None),
    (RARE, 5, None),
    (EventFilter(stream=f"training/{RARE.training_id}"), 5, None),
    (RARE, None, None),
    (RARE, None, "+0"),
    # Nothing was written to the partitions of `rare` lately.
    (EventFilter(), None, "-5"),
    (EventFilter(), None, "3:8"),
)


def test_what_is_read_does_not_grow_with_the_log(tmp_path: Path) -> None:
    installation = installation_at(tmp_path)
    rare = [
        Record(topic_of(event.subject, "cua."), event.subject, event.value)
        for event in logged_events("rare")
    ]
    counts: list[list[int]] = [[] for _ in TAILS]
    for made in (rare, records() * 3, records() * 9):
        write(installation, is_indexed=True, made=made)
        for own, (event_filter, number, offset) in zip(counts, TAILS, strict=True):
            reader = CountingReader(installation.local_log_path, topic_prefix="cua.")
            with closing(reader):
                assert len(last(reader, event_filter, number, None, offset)) >= 5
                own.append(reader.num_records)
    for number_of_tail, own in enumerate(counts):
        assert 5 <= own[2] <= 2 * own[1], (number_of_tail, counts)
        assert own[2] <= 2_500, (number_of_tail, counts)


def test_a_cursor_over_one_training_names_the_end_and_misses_nothing_later(tmp_path: Path) -> None:
    installation, made = installation_at(tmp_path / "home"), records()
    reader = LocalLogReader(installation.local_log_path, topic_prefix="cua.")
    first = EventFilter(training_id=ids.training_id("first"))
    printed: list[bytes] = []
    with closing(reader):
        for start in range(0, len(made), 700):
            write(installation, is_indexed=True, made=made[start : start + 700])
            out = io.BytesIO()
            request = TailRequest(None, None, False, first, lambda _: True)
            cursor = Cursor(tmp_path / "cursor")
            TailSession(reader, request, json_line, out, cursor).run()
            printed += out.getvalue().splitlines()
            ends = reader.end_offsets(reader.partitions())
            assert cursor.load(reader.log_id) == ends
        assert sorted(printed) == sorted(last(reader, everywhere(first), None))
    assert len(printed) == len(set(printed)) > 300


class CountingKafkaReader(KafkaLogReader):
    """Counts the records that it reads."""

    num_records = 0

    def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
        found = super().poll(max_records, timeout_s)
        self.num_records += len(found)
        return found


@pytest.mark.services
def test_on_kafka_the_last_five_read_a_window_of_each_partition(
    kafka: KafkaService, tmp_path: Path
) -> None:
    prefix = f"newest{abs(hash(tmp_path))}."
    installation = replace(
        installation_at(tmp_path),
        topic_prefix=prefix,
        kafka_bootstrap_servers=kafka.bootstrap_servers,
    )
    made = [record._replace(topic=record.topic.replace("cua.", prefix)) for record in records()]
    with closing(KafkaLog(installation, [prefix + name for name in TOPIC_NAMES])) as log:
        for start in range(0, len(made), 500):
            log.append(made[start : start + 500])
    with closing(CountingKafkaReader(installation)) as reader:
        for event_filter in (EventFilter(), EventFilter(training_id=ids.training_id("first"))):
            everything = last(reader, event_filter, None)
            assert everything
            reader.num_records = 0
            assert last(reader, event_filter, 5) == everything[-5:]
            assert reader.num_records < len(made) / 2
            assert last(reader, event_filter, 300) == everything[-300:]
