"""A stream in two partitions: the tables' rows count, whatever order a replay reads them in."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st

from consumers.database.connection import connected
from consumers.errors import MismatchError
from consumers.projection.loop import ProjectionLoop
from consumers.projection.redrive import Operator
from consumers.rebuild.rebuild import build_into, rebuild
from consumers.rebuild.verify import verify
from tests.reference_fold.comparison import database_tables
from tests.reference_fold.disturbances import (
    DISTURBANCES,
    Disturbance,
    claim_wrongly,
    garble,
    repeat,
    state_again,
)
from tests.reference_fold.histories import LoggedEvent, Shape, history
from tests.reference_fold.test_one_hash import empty
from tests.support.decisions import drop_gap, drop_record
from tests.support.held import list_held
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import execute, one
from tests.support.profiles import examples_of_part, in_parts
from tests.support.rebuilding import project

pytestmark = pytest.mark.services
SMALL = Shape(steps=1, groups=1, group_size=1, turns=2, has_trouble=False)


def edited(one: LoggedEvent, **attributes: object) -> bytes:
    return json.dumps(json.loads(one.value) | attributes).encode()


def own_stream() -> list[LoggedEvent]:
    """The training's own events, up to its first step."""
    events = history("split", 1, SMALL)
    return [event for event in events if event.subject == events[0].subject][:8]


def claimed_twice() -> tuple[MemoryLog, str]:
    """A stream that goes on in partition 1, and a claim of another writer in partition 0."""
    events = own_stream()
    log = MemoryLog(num_partitions=2)
    stream = events[0].subject
    for number, event in enumerate(events[:6]):
        log.append(stream, event.value, partition=int(number >= 3))
    claim = {"source": "//other/1", "epoch": 2, "sequence": 1, "continues": "1/5"}
    log.append(stream, edited(events[6], **claim), partition=0)
    return log, stream


def read_by_partition(log: MemoryLog, first: int) -> MemoryReader:
    """A reader that gives one partition after the other, this one first, as Kafka may."""
    other = MemoryLog(log.log_id, log.num_partitions)
    other.records = sorted(
        log.records, key=lambda record: (record.partition != first, record.partition, record.offset)
    )
    return MemoryReader(other)


Reading = Callable[[MemoryLog], MemoryReader]
READINGS: list[Reading] = [
    MemoryReader,
    *(partial(read_by_partition, first=partition) for partition in range(3)),
]
Case = Callable[[MemoryLog, list[LoggedEvent], str], None]


def unreadable(log: MemoryLog, events: list[LoggedEvent], url: str) -> None:
    """The last record of the second partition is garbage."""
    key = events[0].subject
    log.append(key, b"\x00garbage", partition=1)
    project(log, url)
    # What follows it there is parked.
    log.append(key, events[6].value, partition=1)
    project(log, url)


def gap(log: MemoryLog, events: list[LoggedEvent], url: str) -> None:
    """One record is missing, and those behind it are in both partitions."""
    key = events[0].subject
    log.append(key, events[7].value, partition=1)
    log.append(key, events[7].value, partition=0)
    project(log, url)


def given_up_gap(log: MemoryLog, events: list[LoggedEvent], url: str) -> None:
    """An operator gives the gap up, and then its record comes, in the first partition."""
    key = events[0].subject
    log.append(key, events[7].value, partition=1)
    project(log, url)
    drop_gap(log, url, key)
    project(log, url)
    log.append(key, events[6].value, partition=0)
    project(log, url)


def duplicates(log: MemoryLog, events: list[LoggedEvent], url: str) -> None:
    """Everything again, in the other partition."""
    for number, event in enumerate(events[:6]):
        log.append(event.subject, event.value, partition=int(number < 3))
    project(log, url)


def foreign_writer(log: MemoryLog, events: list[LoggedEvent], url: str) -> None:
    """Another process writes the whole stream again under the same epoch."""
    for event in events[:6]:
        log.append(
            event.subject,
            edited(event, source="//other/1", time="2026-01-02T00:00:00Z"),
            partition=1,
        )
    project(log, url)


def foreign_claim(log: MemoryLog, events: list[LoggedEvent], url: str) -> None:
    """Another process claims the next epoch from a point that the stream has passed."""
    claim = {"source": "//other/1", "epoch": 2, "sequence": 1, "continues": "1/2"}
    log.append(events[0].subject, edited(events[3], **claim), partition=1)
    project(log, url)


def dropped_record(log: MemoryLog, events: list[LoggedEvent], url: str) -> None:
    """An operator gives the garbage up, and the stream goes on."""
    unreadable(log, events, url)
    _drop(log, url, rest=False)


def dropped_rest(log: MemoryLog, events: list[LoggedEvent], url: str) -> None:
    """An operator gives up the stream from the garbage on; more comes in either partition."""
    unreadable(log, events, url)
    _drop(log, url, rest=True)
    for partition in (0, 1):
        log.append(events[6].subject, events[6].value, partition=partition)
    project(log, url)


def _drop(log: MemoryLog, url: str, *, rest: bool) -> None:
    with connected(url, "test") as connection:
        parked = list_held(Operator(connection, "cua"), "parked")
    (culprit,) = [held for held in parked if held.kind == "unreadable"]
    drop_record(log, url, culprit.id, rest=rest)
    project(log, url)


APPLIED: dict[Case, tuple[int, int]] = {
    unreadable: (1, 6),
    gap: (1, 6),
    given_up_gap: (1, 8),
    duplicates: (1, 6),
    foreign_writer: (1, 6),
    foreign_claim: (1, 6),
    dropped_record: (1, 7),
    dropped_rest: (1, 6),
}
"""Case -> the stream's last point that counts: six records were applied before anything else."""


@pytest.mark.parametrize("case", APPLIED)
@pytest.mark.parametrize("is_first", [0, 1])
def test_a_replay_in_any_order_gives_the_rows_that_the_tables_have(
    migrated_url: str, case: Case, is_first: int
) -> None:
    events = own_stream()
    log = MemoryLog(num_partitions=2)
    for number, event in enumerate(events[:6]):
        # The topic grew after the third record.
        log.append(event.subject, event.value, partition=int(number >= 3) ^ is_first)
    project(log, migrated_url)
    case(log, events, migrated_url)
    point = "SELECT epoch, sequence FROM cua.stream_position WHERE stream LIKE 'training/%'"
    assert one(migrated_url, point) == APPLIED[case]
    live, held = database_tables(migrated_url), num_held(migrated_url)

    for reader in (MemoryReader(log), read_by_partition(log, 0), read_by_partition(log, 1)):
        verified = verify(reader, migrated_url)
        assert (verified.equal, verified.differences) == (True, [])
    build_into(read_by_partition(log, 1), migrated_url, "copy", run_name="split")
    assert database_tables(migrated_url, "copy") == live
    result = rebuild(read_by_partition(log, 1), migrated_url)
    assert (result.different, result.changed) == ([], 0)
    assert database_tables(migrated_url) == live
    assert one(migrated_url, point) == APPLIED[case]
    assert num_held(migrated_url) == held
    # The new tables go on like the old ones.
    ProjectionLoop(MemoryReader(log), migrated_url).run_once()
    assert database_tables(migrated_url) == live


def num_held(url: str) -> object:
    return one(url, "SELECT coalesce(array_agg(DISTINCT held_as), '{}') FROM cua.held_record")


def test_a_record_that_is_held_although_it_can_be_applied_is_still_found(migrated_url: str) -> None:
    log = MemoryLog(num_partitions=2)
    for number, event in enumerate(own_stream()[:6]):
        log.append(event.subject, event.value, partition=number % 2)
    short = MemoryLog(num_partitions=2)
    *short.records, last = log.records
    project(short, migrated_url)
    execute(
        migrated_url,
        "UPDATE cua.reader_position SET next_offset = next_offset + 1 WHERE partition = 1; INSERT"
        " INTO cua.held_record (log_id, topic, partition, log_offset, held_as, kind, reason,"
        " stream, key, value, appended_at) SELECT log_id, 'cua.rollouts', 1, 2, 'parked',"
        f" 'unreadable', '', '{last.key}', '{last.key}', '', now() FROM cua.projection",
    )
    verified = verify(read_by_partition(log, 1), migrated_url)
    assert not verified.equal
    assert verified.differences != []


def test_streams_whose_order_of_reading_was_not_kept_are_refused_by_name(
    migrated_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    log, stream = claimed_twice()
    project(log, migrated_url)
    # As a release left them that kept no order.
    execute(migrated_url, "UPDATE cua.stream_position SET partitions = NULL")

    assert verify(MemoryReader(log), migrated_url).equal
    named = rf"{stream} \(cua.rollouts/0, cua.rollouts/1\).* `cua-project rebuild`"
    with pytest.raises(MismatchError, match=named):
        verify(read_by_partition(log, 0), migrated_url)
    assert rebuild(read_by_partition(log, 0), migrated_url).different != []
    assert re.search(named, caplog.text)
    assert verify(MemoryReader(log), migrated_url).equal


def test_streams_in_two_partitions_are_tried_again_in_the_order_in_which_they_were_read(
    migrated_url: str,
) -> None:
    """Two records in one place are parked: the one read first counts, whichever came first."""
    events = own_stream()
    stream = events[0].subject
    log = MemoryLog(num_partitions=2)
    first, second = (edited(events[2], time=f"2026-01-02T00:00:0{n}Z") for n in (1, 2))
    # The log got partition 1 first, the tables read partition 0 first.
    log.append(stream, second, partition=1)
    for event in events[:2]:
        log.append(stream, event.value, partition=0)
    log.append(stream, b"\x00garbage", partition=0)
    log.append(stream, first, partition=0)
    ProjectionLoop(read_by_partition(log, 0), migrated_url).run_once()
    _drop(log, migrated_url, rest=False)

    last = "SELECT last_event_at FROM cua.stream_position"
    assert one(migrated_url, last) == datetime(2026, 1, 2, 0, 0, 1, tzinfo=UTC)
    for partition in (0, 1):
        assert verify(read_by_partition(log, partition), migrated_url).equal


def test_records_in_two_partitions_wait_in_the_order_of_reading_also_after_a_restart(
    migrated_url: str,
) -> None:
    """Two records in one place wait for the one before them: the one read first counts."""
    events = own_stream()
    stream = events[0].subject
    log = MemoryLog(num_partitions=2)
    first, second = (edited(events[3], time=f"2026-01-02T00:00:0{n}Z") for n in (1, 2))
    for event in events[:2]:
        log.append(stream, event.value, partition=1)
    log.append(stream, first, partition=1)
    project(log, migrated_url)
    log.append(stream, second, partition=0)
    project(log, migrated_url)
    assert num_held(migrated_url) == ["waiting"]
    log.append(stream, events[2].value, partition=1)
    project(log, migrated_url)

    last = "SELECT last_event_at FROM cua.stream_position"
    assert one(migrated_url, last) == datetime(2026, 1, 2, 0, 0, 1, tzinfo=UTC)
    for partition in (0, 1):
        assert verify(read_by_partition(log, partition), migrated_url).equal


def stream_states(url: str) -> object:
    """What is known of streams and held, but for the order of reading."""
    return one(
        url,
        "SELECT jsonb_build_array((SELECT jsonb_agg(to_jsonb(state) - 'partitions' ORDER BY stream)"
        " FROM cua.stream_position AS state), (SELECT jsonb_agg(to_jsonb(held) ORDER BY topic,"
        " partition, log_offset) FROM cua.held_record AS held))",
    )


@in_parts()
def test_every_split_of_every_log_verifies_in_every_order(
    migrated_url: str, part: int | None
) -> None:
    """An example rebuilds, some 600 statements, which wear a database's catalogue."""

    @settings(max_examples=examples_of_part(quick=8))
    @given(
        seed=st.integers(0, 2**32),
        disturbances=st.lists(st.sampled_from(DISTURBANCES), min_size=1, max_size=5),
        partitions=st.integers(1, 3),
        projected=st.sampled_from(READINGS),
        verified=st.sampled_from(READINGS),
        rebuilt=st.sampled_from(READINGS),
    )
    # Two claims of one writer with different contents: whichever was read first counts.
    @example(
        seed=58,
        disturbances=[claim_wrongly, claim_wrongly, garble],
        partitions=3,
        projected=MemoryReader,
        verified=partial(read_by_partition, first=1),
        rebuilt=partial(read_by_partition, first=2),
    )
    # A row that is made twice, in two batches by one and in one by the other.
    @example(
        seed=0,
        disturbances=[repeat, state_again],
        partitions=1,
        projected=MemoryReader,
        verified=MemoryReader,
        rebuilt=MemoryReader,
    )
    def verifies(
        seed: int,
        disturbances: list[Disturbance],
        partitions: int,
        projected: Reading,
        verified: Reading,
        rebuilt: Reading,
    ) -> None:
        empty(migrated_url)
        random = Random(seed)
        events = history("split", seed, SMALL)
        for disturb in sorted(disturbances, key=lambda disturbance: disturbance is garble):
            disturb(events, random)
        log = MemoryLog(num_partitions=partitions)
        for event in events:
            log.append(event.subject, event.value, partition=random.randrange(partitions))
        size = random.choice([1, 7, 400])
        ProjectionLoop(projected(log), migrated_url, batch_records=size).run_once()
        found = verify(verified(log), migrated_url)
        assert (found.equal, found.differences[:3]) == (True, [])
        rows, states = database_tables(migrated_url), stream_states(migrated_url)
        assert rebuild(rebuilt(log), migrated_url).different == []
        assert database_tables(migrated_url) == rows
        assert stream_states(migrated_url) == states

    (verifies if part is None else with_seed(part)(verifies))()
