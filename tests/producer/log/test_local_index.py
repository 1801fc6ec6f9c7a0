"""The local log's index of streams: whatever wrote the file, reading by it misses nothing."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from uuid import UUID, uuid5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from producer.log.local import LocalLog
from producer.log.local_index import LocalIndex
from producer.log.spool import Spool
from producer.log.writer import Record, TopicPartition
from schemas.home import home_partition
from schemas.ids import NAMESPACE
from schemas.local_index import BLOCK_OFFSETS, places_of_streams, places_of_training, spans
from schemas.training import HeartbeatSent
from schemas.wire import encode
from tests.support.profiles import examples

TOPICS = ["cua.training", "cua.rollouts"]
TOPIC = "cua.rollouts"
TRAININGS = [uuid5(NAMESPACE, name) for name in ("a", "b", "c")]
STREAMS = [f"rollout/{uuid5(NAMESPACE, str(number))}" for number in range(5)]


def event(subject: str, training: UUID | None, sequence: int = 1) -> bytes:
    return encode(
        HeartbeatSent(),
        id=uuid5(NAMESPACE, "event"),
        source="//host/1/1",
        time=datetime(2026, 1, 1, tzinfo=UTC),
        subject=subject,
        epoch=1,
        sequence=sequence,
        training_id=training,
    )


def written(subject: str, training: UUID | None, sequence: int = 1) -> Record:
    """As the emitter hands it over."""
    value = event(subject, training, sequence)
    return Record(TOPIC, subject, value, "" if training is None else str(training))


@st.composite
def records(draw: st.DrawFn) -> Record:
    """What any writer may append: the emitter, another tool, or a stranger."""
    stream, training = draw(st.sampled_from(STREAMS)), draw(st.sampled_from([*TRAININGS, None]))
    record = written(stream, training)
    kind = draw(st.sampled_from(["ours", "unnamed", "spaced", "foreign", "garbage"]))
    if kind == "ours":
        return record
    if kind == "spaced":
        return Record(TOPIC, stream, record.value.replace(b'","', b'" , "'))
    if kind == "foreign":
        return Record(TOPIC, draw(st.sampled_from(STREAMS)), record.value)
    return Record(TOPIC, stream, record.value if kind == "unnamed" else b'{"subject":')


@settings(max_examples=examples(quick=40))
@given(
    # As the log or as a spool; what; how many times.
    appended=st.lists(
        st.tuples(st.booleans(), st.lists(records(), min_size=1, max_size=12), st.integers(1, 40)),
        max_size=4,
    ),
    since=st.integers(0, 300),
)
def test_reading_by_the_index_finds_what_reading_everything_finds(
    tmp_path_factory: pytest.TempPathFactory,
    appended: list[tuple[bool, list[Record], int]],
    since: int,
) -> None:
    path = tmp_path_factory.mktemp("log") / "log.sqlite3"
    all_records: list[Record] = []
    for is_indexed, batch, times in appended:
        with closing(LocalLog(path, topics=TOPICS, is_indexed=is_indexed)) as log:
            log.append(batch * times)
            all_records += batch * times
    with closing(LocalLog(path, topics=TOPICS, is_indexed=False)) as log:
        check_reading(log, all_records, since)
    with closing(LocalLog(path, topics=TOPICS)) as log:
        check_reading(log, all_records, since)


def check_reading(log: LocalLog, appended: list[Record], since: int) -> None:
    """Streams and trainings as the appended records have them, each partition from `since` on."""
    bounds = {place: min(since, end) for place, end in log.ends().items()}
    everything = list(log.read_topic(TOPIC, bounds))
    offsets: dict[int, Iterator[int]] = {}
    kept = [
        record
        for record in appended
        if next(offsets.setdefault(home_partition(record.key, 12), count()))
        >= bounds[TopicPartition(TOPIC, home_partition(record.key, 12))]
    ]
    assert sorted(everything) == sorted((item.key, item.value) for item in kept)
    for stream in STREAMS:
        expected = [(item.key, item.value) for item in kept if item.key == stream]
        assert list(log.read_streams(TOPIC, [stream], bounds)) == expected
    for training in TRAININGS:
        needle = str(training).encode()
        found = [item for item in log.read_training(TOPIC, training, bounds) if needle in item[1]]
        assert found == [item for item in everything if needle in item[1]]


def fill(log: LocalLog, num_records: int, at_once: int = 1_000) -> None:
    """Records of a hundred streams, a training for every ten of them."""
    made = [
        written(f"rollout/{number % 100}", uuid5(NAMESPACE, str(number % 10)), number + 1)
        for number in range(num_records)
    ]
    for start in range(0, num_records, at_once):
        log.append(made[start : start + at_once])


def looked_through(path: Path, training: UUID) -> int:
    """How many records the index gives for a training."""
    with closing(sqlite3.connect(path)) as connection:
        ends = dict(connection.execute("SELECT id, next_offset FROM partitions"))
        parts = {partition_id: range(end) for partition_id, end in ends.items()}
        return sum(len(one) for _, one in spans(connection, parts, places_of_training(training)))


def test_what_is_read_of_a_training_does_not_grow_with_what_others_append(tmp_path: Path) -> None:
    log = LocalLog(tmp_path / "log.sqlite3", topics=TOPICS)
    mine = [written(f"rollout/own-{number}", TRAININGS[0]) for number in range(50)]
    log.append(mine)
    before = looked_through(log.path, TRAININGS[0])
    fill(log, 10_000)
    assert len(list(log.read_training(TOPIC, TRAININGS[0], {}))) <= len(mine) * BLOCK_OFFSETS
    assert before <= looked_through(log.path, TRAININGS[0]) <= 12 * BLOCK_OFFSETS
    log.close()


def test_a_block_is_written_once_for_a_training_however_many_streams_it_has(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite3"
    LocalLog(path, topics=TOPICS).close()
    statements: list[str] = []
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        index = LocalIndex(connection)
        connection.set_trace_callback(statements.append)
        # Two blocks of one partition, in commits of ten.
        for position in range(1, 2 * BLOCK_OFFSETS, 10):
            records = [
                written(f"rollout/{number}", TRAININGS[number % 2])
                for number in range(position, position + 10)
            ]
            rows = [
                (position + number, 1, position + number - 1, 0, one.key, one.value)
                for number, one in enumerate(records)
            ]
            index.extend(rows, records)
        found = set(connection.execute("SELECT training, block FROM training_blocks"))
    made = [statement for statement in statements if "INTO training_blocks" in statement]
    assert found == {(str(training), block) for training in TRAININGS[:2] for block in (0, 1, 2)}
    assert len(made) == len(found)


def test_what_a_spool_appended_is_indexed_when_the_file_becomes_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite3"
    with closing(LocalLog(path, topics=TOPICS, is_indexed=False)) as spool:
        fill(spool, 5_000)
    assert looked_through(path, TRAININGS[0]) == 5_000
    with closing(LocalLog(path, topics=TOPICS)) as log:
        assert looked_through(path, TRAININGS[0]) == 0
        assert len(list(log.read_streams(TOPIC, ["rollout/7"], {}))) == 50


def test_a_process_that_spools_may_append_to_a_file_with_the_index(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite3"
    with (
        closing(LocalLog(path, topics=TOPICS)) as log,
        closing(LocalLog(path, is_indexed=False)) as spool,
    ):
        fill(log, 3_000)
        spool.append([written("rollout/7", TRAININGS[0])] * 3)
        assert len(list(log.read_streams(TOPIC, ["rollout/7"], {}))) == 33
        fill(log, 1_000)
        # The append after the spool's has caught up.
        assert looked_through(path, TRAININGS[1]) == 0
        assert len(list(log.read_streams(TOPIC, ["rollout/7"], {}))) == 43
        assert len(list(spool.read_training(TOPIC, TRAININGS[0], {}))) >= 3


def test_pruned_records_leave_an_index_that_still_holds(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite3"
    with closing(LocalLog(path, topics=TOPICS)) as log, closing(Spool(path)) as spool:
        fill(log, 3_000)
        spool.move("kafka", 2_001)
        now = datetime.now(UTC) + timedelta(days=1)
        while spool.prune("kafka", timedelta(0), now):
            pass
        assert len(list(log.read_streams(TOPIC, ["rollout/7"], {}))) == 10
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE head SET indexed_to = 1")
    with closing(LocalLog(path, topics=TOPICS)) as log:
        assert len(list(log.read_streams(TOPIC, ["rollout/7"], {}))) == 10


def test_a_stream_is_looked_for_under_its_key_and_under_the_name_its_events_give(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.sqlite3"
    with closing(LocalLog(path, topics=TOPICS)) as log:
        log.append([Record(TOPIC, "rollout/key", event("rollout/name", None))])
    with closing(sqlite3.connect(path)) as connection:
        partitions = {
            partition_id: range(end)
            for partition_id, end in connection.execute("SELECT id, next_offset FROM partitions")
        }
        for name in ("rollout/key", "rollout/name"):
            assert list(spans(connection, partitions, places_of_streams([name])))
        assert not list(spans(connection, partitions, places_of_streams(["rollout/other"])))


def test_a_garbled_record_is_indexed_under_its_key_and_stops_no_writer(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite3"
    garbled = event(STREAMS[0], TRAININGS[0]).replace(b'"subject":"r', b'"subject":"\xff')
    with closing(LocalLog(path, topics=TOPICS)) as log:
        log.append([Record(TOPIC, STREAMS[0], garbled)])
        assert list(log.read_streams(TOPIC, [STREAMS[0]], {})) == [(STREAMS[0], garbled)]
