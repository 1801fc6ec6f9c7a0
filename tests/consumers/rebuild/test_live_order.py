"""Streams in several partitions: a replay in the tables' own order ends with their rows."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consumers.errors import MismatchError
from consumers.fold.arrivals import MAX_RUNS, Arrivals, stored_arrivals
from consumers.fold.fold import Fold
from consumers.fold.held import Coordinates, Held
from consumers.fold.ownership import Lookups
from consumers.fold.parse import ParsedRecord, parse_record
from consumers.fold.rows import Rows
from consumers.fold.stream import Stream
from consumers.log.reader import LogRecord, TopicPartition
from consumers.projection.decisions import Decision
from consumers.rebuild.live_order import LiveOrder
from schemas.decision import RecordDropped, RestDropped, value_hash
from tests.reference_fold.disturbances import DISTURBANCES, Disturbance, garble
from tests.reference_fold.histories import Shape, history
from tests.support.decisions import encoded
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.profiles import examples

TOPIC = "cua.rollouts"
SHAPES = st.builds(
    Shape,
    steps=st.integers(1, 2),
    groups=st.integers(1, 2),
    group_size=st.integers(1, 2),
    turns=st.integers(1, 2),
    has_trouble=st.booleans(),
)


@dataclass
class Tables:
    """What a projection without a database knows."""

    memory: dict[str, list[Held]] = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)
    rows: Rows = field(default_factory=Rows)
    held: dict[Coordinates, Held] = field(default_factory=dict)

    def fold(self) -> Fold:
        rows, memory = self.rows, self.memory
        lookups = Lookups(is_step=lambda id_: id_ in rows.inserts.get("step", {}))
        return Fold(self.streams, log_id="log", write=rows.add, lookups=lookups, memory=memory)

    def note(self, fold: Fold) -> None:
        for coordinates in fold.batch.released:
            del self.held[coordinates]
        self.held.update(fold.batch.held)

    def project(self, parsed_records: Iterable[ParsedRecord]) -> None:
        fold = self.fold()
        fold.take_all(parsed_records)
        self.note(fold)

    def contents(self) -> tuple[object, ...]:
        """Rows, streams and held records, whatever wrote them when."""
        rows = self.rows
        # A scoring has no states, so its end is applied although an operator gave its creation up.
        unmade = {table for table, changes in rows.changes.items() if changes} - {"scoring"}
        assert not unmade, "an update of a row that nothing has made"
        streams = {
            name: (
                stream.row(),
                sorted(held.coordinates for held in stream.waiting),
            )
            for name, stream in self.streams.items()
        }
        # Not the reason: it says where the stream was when the record was last tried.
        held = {at: (one.held_as, one.kind) for at, one in self.held.items()}
        return rows.inserts, rows.upserts, streams, held


def scattered(records: Iterable[LogRecord], random: Random) -> list[LogRecord]:
    """In an order of reading: each partition's is kept, and some records are read in one go."""
    queues: dict[int, list[LogRecord]] = {}
    for record in records:
        queues.setdefault(record.partition, []).append(record)
    found: list[LogRecord] = []
    while queues:
        partition = random.choice(sorted(queues))
        num_read = random.choice([1, 1, 3, 20])
        found += queues[partition][:num_read]
        del queues[partition][:num_read]
        if not queues[partition]:
            del queues[partition]
    return found


def replayed(log: MemoryLog, order: LiveOrder, size: int) -> list[ParsedRecord]:
    """What a replay takes, as `rebuild.replay` asks."""
    reader = MemoryReader(log)
    until = reader.end_offsets(reader.partitions())
    read = dict.fromkeys(until, 0)
    reader.seek(read)
    taken: list[ParsedRecord] = []
    for _ in range(100 * len(log.records) + 100):
        if read == until:
            return taken
        for parsed in order.take(reader.poll(size, 0.0), read, until):
            at = TopicPartition(parsed.record.topic, parsed.record.partition)
            assert parsed.record.offset == read[at], "each partition in order, nothing left out"
            read[at] += 1
            taken.append(parsed)
        order.seek(reader, read, until)
    pytest.fail("the replay does not end")


def live_order(tables: Tables) -> LiveOrder:
    """As the table `stream_position` gives it."""
    found = {
        name: stored_arrivals(document)
        for name, stream in tables.streams.items()
        if (document := stream.arrivals.document()) is not None and len(document) > 1
    }
    return LiveOrder(found)


def test_a_replay_ends_with_the_rows_streams_and_held_records_of_any_order_of_reading() -> None:
    @settings(max_examples=examples(quick=150), suppress_health_check=[HealthCheck.too_slow])
    @given(
        seed=st.integers(0, 2**32),
        shape=SHAPES,
        disturbances=st.lists(st.sampled_from(DISTURBANCES), max_size=6),
        partitions=st.integers(1, 3),
        share=st.sampled_from([0.05, 0.3, 1.0]),
        num_decisions=st.integers(0, 3),
    )
    def ends_alike(**drawn: Any) -> None:
        check(**drawn)

    ends_alike()


def check(
    seed: int,
    shape: Shape,
    disturbances: list[Disturbance],
    partitions: int,
    share: float,
    num_decisions: int,
) -> None:
    random = Random(seed)
    events = history("split", seed, shape)
    for disturb in sorted(disturbances, key=lambda disturbance: disturbance is garble):
        disturb(events, random)
    log = MemoryLog(num_partitions=partitions)
    partition = 0
    for event in events:
        if random.random() < share:
            partition = random.randrange(partitions)
        log.append(event.subject, event.value, TOPIC, partition)
    live = Tables()
    live.project(map(parse_record, scattered(log.records, random)))
    for _ in range(num_decisions):
        culprits = [
            held
            for _, held in sorted(live.held.items())
            if held.held_as == "parked" and held.kind != "behind"
        ]
        if culprits:
            chosen = random.choice(culprits)
            kind = RestDropped if random.random() < 0.4 else RecordDropped
            payload = kind(value_sha256=value_hash(chosen.record.value), made_by="tester")
            value = encoded(Decision(chosen.stream, None, payload))
            # As the topic has grown, in any partition.
            decision = log.append(chosen.stream, value, TOPIC, random.randrange(partitions))
            live.project([parse_record(decision)])

    in_another = MemoryLog(num_partitions=partitions)
    in_another.records = scattered(log.records, random)
    again = Tables()
    again.project(replayed(in_another, live_order(live), random.choice([1, 7, 1000])))

    assert again.contents() == live.contents()


def test_of_two_records_in_one_place_the_one_that_the_tables_read_first_counts_again() -> None:
    events = history("split", 1, Shape())
    stream = events[0].subject
    first, second, third = [event.value for event in events if event.subject == stream][:3]
    log = MemoryLog(num_partitions=2)
    other = json.dumps(json.loads(third) | {"time": "2026-01-02T00:00:00Z"}).encode()
    # The log got partition 1 first, the tables read partition 0 first.
    for partition, value in ((1, other), (0, first), (0, second), (0, third)):
        log.append(stream, value, TOPIC, partition)
    live, again, plain = Tables(), Tables(), Tables()
    live.project(map(parse_record, sorted(log.records)))

    again.project(replayed(log, live_order(live), 100))
    plain.project(map(parse_record, log.records))

    time = datetime.fromisoformat(json.loads(third)["time"])
    assert live.streams[stream].last_event_at == time
    assert again.streams[stream].last_event_at == time
    assert plain.streams[stream].last_event_at == datetime(2026, 1, 2, tzinfo=UTC)
    assert again.contents() == live.contents() != plain.contents()


def test_a_record_waits_for_those_of_other_partitions_that_the_tables_read_before_it() -> None:
    stream = history("split", 1, Shape())[0].subject
    log = MemoryLog(num_partitions=2)
    for partition in (0, 0, 0, 1, 1):
        log.append(stream, b"", TOPIC, partition)
    read = [(1, 0), (0, 0), (0, 1), (1, 1), (0, 2)]
    arrivals = Arrivals()
    for partition, offset in read:
        arrivals.add(TOPIC, partition, offset)
    order = LiveOrder({stream: stored_arrivals(arrivals.document())})

    taken = [parsed.record for parsed in replayed(log, order, 100)]

    assert [(record.partition, record.offset) for record in taken] == read


def test_a_log_that_has_a_stream_in_other_partitions_than_the_tables_read_is_refused() -> None:
    stream = history("split", 1, Shape())[0].subject
    order = LiveOrder(
        {
            stream: stored_arrivals([[TOPIC, 1, 1], [TOPIC, 0, 1]]),
            f"training/{'0' * 8}-0000-0000-0000-{'0' * 12}": stored_arrivals(
                [[TOPIC, 0, 2], [TOPIC, 1, 1]]
            ),
        }
    )
    log = MemoryLog(num_partitions=2)
    log.append(stream, b"", TOPIC, 0)
    log.append(f"training/{'0' * 8}-0000-0000-0000-{'0' * 12}", b"", TOPIC, 1)
    log.append(stream, b"", TOPIC, 0)

    with pytest.raises(MismatchError, match=r"cua.rollouts/0 offset 0 .* several partitions"):
        replayed(log, order, 100)


def test_of_a_stream_that_changes_partition_too_often_only_the_places_are_kept() -> None:
    arrivals = Arrivals()
    for number in range(MAX_RUNS + 1):
        assert arrivals.is_ordered
        arrivals.add(TOPIC, number % 3, number)
    arrivals.add("cua.training", 0, 0)
    arrivals.add(TOPIC, 0, MAX_RUNS + 1)

    assert not arrivals.is_ordered
    assert arrivals.rank(TOPIC, 1, 0) == 0
    assert sorted(arrivals.document() or []) == [
        (TOPIC, 0, None),
        (TOPIC, 1, None),
        (TOPIC, 2, None),
        ("cua.training", 0, None),
    ]
    assert stored_arrivals(arrivals.document()) == arrivals


def test_arrivals_that_older_code_has_begun_stay_unknown() -> None:
    arrivals = stored_arrivals(None)
    arrivals.add(TOPIC, 0, 5)

    assert arrivals.document() is None
    assert not arrivals.is_ordered
