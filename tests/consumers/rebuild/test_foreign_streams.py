"""Records outside of their stream's home are refused, and no replay in any order differs."""

from collections.abc import Callable
from functools import partial
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st

from consumers.database.connection import connected
from consumers.errors import MismatchError, UsageError
from consumers.fold.parse import parse_record
from consumers.projection.decisions import Decision
from consumers.projection.loop import ProjectionLoop
from consumers.projection.operators import Operator
from consumers.rebuild.rebuild import build_into, rebuild
from consumers.rebuild.verify import verify
from schemas.decision import RestDropped, value_hash
from schemas.home import home_partition
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.disturbances import DISTURBANCES, Disturbance, garble
from tests.reference_fold.histories import LoggedEvent, Shape, history
from tests.reference_fold.reference import fold
from tests.reference_fold.reference_home import at_home
from tests.reference_fold.strays import append_with_strays
from tests.reference_fold.test_one_hash import empty
from tests.support.decisions import BY, drop_record, encoded
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import one
from tests.support.profiles import examples_of_part, in_parts
from tests.support.rebuilding import project
from tests.support.unapplied import list_unapplied

pytestmark = pytest.mark.services
SMALL = Shape(steps=1, groups=1, group_size=1, turns=2, has_trouble=False)


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


def unapplied_and_streams(url: str) -> object:
    return one(
        url,
        "SELECT jsonb_build_array((SELECT jsonb_agg(to_jsonb(state) ORDER BY stream) FROM"
        " cua.stream_position AS state), (SELECT jsonb_agg(to_jsonb(unapplied) ORDER BY topic,"
        " partition, log_offset) FROM cua.unapplied_record AS unapplied))",
    )


def own_stream() -> list[LoggedEvent]:
    """The training's own events, up to its first step."""
    events = history("foreign", 1, SMALL)
    return [event for event in events if event.subject == events[0].subject][:6]


def test_foreign_records_are_refused_in_streams_of_their_own_and_touch_no_other(
    migrated_url: str,
) -> None:
    events = own_stream()
    subject = events[0].subject
    log = MemoryLog(num_partitions=3)
    other = (home_partition(subject, 3) + 1) % 3
    give_up = Decision(subject, None, RestDropped(value_sha256=value_hash(events[2].value), **BY))
    foreign = [
        log.append(subject, b"garbage", partition=other),
        log.append(subject, encoded(give_up), partition=other),
        log.append(None, events[5].value, "cua.rollouts", home_partition(subject, 3)),
    ]
    for event in events:
        log.append(subject, event.value)
    foreign.append(log.append(subject, events[0].value, partition=other))

    project(log, migrated_url)

    last = f"SELECT sequence FROM cua.stream_position WHERE stream = '{subject}'"
    assert one(migrated_url, last) == 6
    assert one(migrated_url, "SELECT count(*) FROM cua.stream_position") == 1
    with connected(migrated_url, "test") as connection:
        operator = Operator(connection, "cua")
        refused = list_unapplied(operator, "refused")
        assert {(item.kind, item.stream) for item in refused} == {
            ("foreign", parse_record(record, log.log_id).stream) for record in foreign
        }
        assert len({item.stream for item in refused}) == len(refused) == len(foreign)
        assert refused == list_unapplied(operator)
        assert operator.show(refused[0].id)[1] in [record.value for record in foreign]
    with pytest.raises(UsageError, match="is in no stream"):
        drop_record(log, migrated_url, refused[0].id)
    for reading in READINGS:
        assert verify(reading(log), migrated_url).equal
    before = database_tables(migrated_url), unapplied_and_streams(migrated_url)
    build_into(read_by_partition(log, other), migrated_url, "copy", run_name="foreign")
    assert database_tables(migrated_url, "copy") == before[0]
    assert rebuild(read_by_partition(log, other), migrated_url).equal
    assert (database_tables(migrated_url), unapplied_and_streams(migrated_url)) == before


def test_tables_refuse_a_small_log_that_has_grown_and_say_what_to_do(migrated_url: str) -> None:
    log, grown = MemoryLog(num_partitions=3), MemoryLog(num_partitions=5)
    for event in own_stream():
        log.append(event.subject, event.value)
        grown.append(event.subject, event.value)
    project(log, migrated_url)
    says = "topic training had 3 partitions and has 5 now.* choose another CUA_TOPIC_PREFIX"
    loop = ProjectionLoop(MemoryReader(grown), migrated_url)
    adopting = ProjectionLoop(MemoryReader(grown), migrated_url, adopt=True)
    for refuses in (
        loop.run_once,
        adopting.run_once,
        partial(verify, MemoryReader(grown), migrated_url),
        partial(rebuild, MemoryReader(grown), migrated_url),
    ):
        with pytest.raises(MismatchError, match=says):
            refuses()


@in_parts()
def test_every_log_with_foreign_records_verifies_in_every_order(
    migrated_url: str, part: int | None
) -> None:
    """An example rebuilds, some 600 statements, which wear a database's catalogue."""

    @settings(max_examples=examples_of_part(quick=5))
    @given(
        seed=st.integers(0, 2**32),
        disturbances=st.lists(st.sampled_from(DISTURBANCES), min_size=1, max_size=5),
        partitions=st.integers(1, 3),
        strays=st.integers(0, 12),
        projected=st.sampled_from(READINGS),
        verified=st.sampled_from(READINGS),
        rebuilt=st.sampled_from(READINGS),
    )
    def verifies(
        seed: int,
        disturbances: list[Disturbance],
        partitions: int,
        strays: int,
        projected: Reading,
        verified: Reading,
        rebuilt: Reading,
    ) -> None:
        empty(migrated_url)
        random = Random(seed)
        events = history("foreign", seed, SMALL)
        for disturb in sorted(disturbances, key=lambda disturbance: disturbance is garble):
            disturb(events, random)
        log = MemoryLog(num_partitions=partitions)
        append_with_strays(log, events, strays, random)
        size = random.choice([1, 7, 400])
        ProjectionLoop(projected(log), migrated_url, batch_records=size).run_once()

        own, num_foreign = at_home(log.records, partitions)
        rows, states = database_tables(migrated_url), unapplied_and_streams(migrated_url)
        assert differences(plain_tables(fold(own).tables), rows) == []
        foreign = "SELECT count(*) FROM cua.unapplied_record WHERE kind = 'foreign'"
        assert one(migrated_url, foreign) == num_foreign
        found = verify(verified(log), migrated_url)
        assert (found.equal, found.differences[:3]) == (True, [])
        assert rebuild(rebuilt(log), migrated_url).different == []
        assert database_tables(migrated_url) == rows
        assert unapplied_and_streams(migrated_url) == states

    (verifies if part is None else with_seed(part)(verifies))()
