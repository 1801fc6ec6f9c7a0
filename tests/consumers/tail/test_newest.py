"""`tail -n N` reads from the end, and prints what reading everything would print last."""

import io
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from consumers.log.kafka import KafkaLogReader
from consumers.log.local import LocalLogReader
from consumers.log.reader import LogReader, LogRecord
from consumers.tail.event_filter import EventFilter
from consumers.tail.formats import json_line
from consumers.tail.session import TailRequest, TailSession
from producer.log.kafka import KafkaLog
from producer.log.local import LocalLog
from producer.log.writer import Record
from schemas import ids
from schemas.catalogue import TOPIC_NAMES, topic_of
from schemas.installation import Installation
from tests.support.kafka import KafkaService
from tests.support.logs import logged_events
from tests.support.reading import installation_at

NAMES = ("first", "second", "third")
NUM_ROUNDS = 3


@cache
def records() -> tuple[Record, ...]:
    """Several trainings, a stranger's event under another key, and garbage."""
    made = [
        Record(topic_of(event.subject, "cua."), event.subject, event.value)
        for number in range(NUM_ROUNDS)
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


def last(
    reader: LogReader,
    event_filter: EventFilter,
    number: int | None,
    wanted: Mapping[str, range] | None = None,
) -> list[bytes]:
    request = TailRequest(
        None,
        number,
        follow=False,
        event_filter=event_filter,
        is_wanted=lambda tp: wanted is None or tp.partition in wanted.get(tp.topic, range(0)),
    )
    out = io.BytesIO()
    TailSession(reader, request, json_line, out, None).run()
    return out.getvalue().splitlines()


@pytest.mark.parametrize("written_by", ["this version", "an older version", "both"])
def test_the_last_records_are_those_that_reading_everything_ends_with(
    tmp_path: Path, written_by: str
) -> None:
    installation, made = installation_at(tmp_path), records()
    middle = {"this version": len(made), "an older version": 0, "both": len(made) - 500}[written_by]
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
                everything = last(reader, event_filter, None, wanted)
                for number in (1, 30, 10_000):
                    found = last(reader, event_filter, number, wanted)
                    assert found == everything[-number:], (event_filter, wanted, number)


class CountingReader(LocalLogReader):
    """Counts the rows that it reads."""

    num_rows = 0

    def _all(self, statement: str, values: Sequence[object] = ()) -> list[tuple]:  # type: ignore[type-arg]
        rows = super()._all(statement, values)
        self.num_rows += len(rows)
        return rows


@pytest.mark.parametrize(
    "event_filter",
    [
        EventFilter(),
        EventFilter(training_id=ids.training_id("rare")),
        EventFilter(stream=f"training/{ids.training_id('rare')}"),
    ],
)
def test_what_the_last_five_cost_does_not_grow_with_the_log(
    tmp_path: Path, event_filter: EventFilter
) -> None:
    installation = installation_at(tmp_path)
    rare = [
        Record(topic_of(event.subject, "cua."), event.subject, event.value)
        for event in logged_events("rare")
    ]
    counts = []
    for made in (rare, records() * 3, records() * 9):
        write(installation, is_indexed=True, made=made)
        reader = CountingReader(installation.local_log_path, topic_prefix="cua.")
        with closing(reader):
            assert len(last(reader, event_filter, 5)) == 5
            counts.append(reader.num_rows)
    assert counts[2] <= 2 * counts[1], counts
    assert counts[2] <= 2_000


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
    made = [one._replace(topic=one.topic.replace("cua.", prefix)) for one in records()]
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
