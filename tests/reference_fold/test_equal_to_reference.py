"""Whatever history, disturbances, batches and restarts, the tables equal the reference fold's."""

from collections.abc import Iterator
from contextlib import closing
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consumers.database.connection import Connection, connect
from consumers.fold.parse import parse_record
from consumers.projection.schema import ProjectedSchema
from consumers.status import count_held
from consumers.tables import ROW_TABLES, STATE_TABLES
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.cutting import cut_streams
from tests.reference_fold.disturbances import (
    DISTURBANCES,
    Disturbance,
    come_from_older_code,
    contradict,
    repeat,
)
from tests.reference_fold.histories import Shape, history, interleaved
from tests.reference_fold.reference import fold
from tests.support.memory_log import MemoryLog
from tests.support.profiles import examples

pytestmark = pytest.mark.services

SHAPES = st.builds(
    Shape,
    steps=st.integers(1, 2),
    groups=st.integers(1, 2),
    group_size=st.integers(1, 2),
    turns=st.integers(1, 3),
    has_trouble=st.booleans(),
    tells_everything=st.booleans(),
)


@pytest.fixture
def connection(migrated_url: str) -> Iterator[Connection]:
    with closing(connect(migrated_url, "test")) as opened:
        yield opened


def empty(connection: Connection) -> None:
    with connection, connection.cursor() as cursor:
        cursor.execute(
            "".join(
                f'DELETE FROM cua."{table.__tablename__}";'
                for table in (*ROW_TABLES, *STATE_TABLES)
            )
        )


def project_in_pieces(connection: Connection, log: MemoryLog, random: Random) -> None:
    """Batches of any size; now and then a new projector, which knows the tables alone."""
    schema = ProjectedSchema(connection, "cua", log.log_id)
    schema.load()
    left = list(log.records)
    while left:
        size = random.choice([1, 2, 7, 50, 400])
        schema.apply([parse_record(record) for record in left[:size]])
        del left[:size]
        if random.random() < 0.2:
            schema = ProjectedSchema(connection, "cua", log.log_id)
            schema.load()


@settings(
    max_examples=examples(quick=40),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    seeds=st.lists(st.integers(0, 2**32), min_size=1, max_size=2, unique=True),
    shape=SHAPES,
    disturbances=st.lists(st.sampled_from(DISTURBANCES), max_size=4),
    seed=st.integers(0, 2**32),
    partitions=st.integers(1, 4),
    is_cut=st.booleans(),
)
def test_the_tables_equal_the_reference_fold(
    migrated_url: str,
    connection: Connection,
    seeds: list[int],
    shape: Shape,
    disturbances: list[Disturbance],
    seed: int,
    partitions: int,
    *,
    is_cut: bool,
) -> None:
    empty(connection)
    random = Random(seed)
    events = list(
        interleaved([history(f"run-{number}", number, shape) for number in seeds], random)
    )
    if is_cut:
        events = cut_streams(events, random)
    for disturb in disturbances:
        disturb(events, random)
    log = MemoryLog(num_partitions=partitions)
    for one in events:
        log.append(one.subject, one.value)

    project_in_pieces(connection, log, random)

    reference = fold((record.key, record.value) for record in log.records)
    assert differences(plain_tables(reference.tables), database_tables(migrated_url)) == []
    with connection, connection.cursor() as cursor:
        held = count_held(cursor)
    assert (held.parked, held.duplicates, held.fenced) == tuple(
        reference.count(name) for name in ("parked", "duplicates", "fenced")
    )
    assert held.gaps == sum(bool(stream.waiting) for stream in reference.streams.values())


def test_a_change_from_a_foreign_stream_before_the_row_is_there_is_lost_in_any_batching(
    migrated_url: str, connection: Connection
) -> None:
    # Found by the property above: a training's stream speaks of an evaluation's group before that
    # is created.
    random = Random(553)
    events = list(
        interleaved(
            [history("run-27006726", 27006726, Shape(steps=2, groups=1, group_size=1, turns=1))],
            random,
        )
    )
    for disturb in (repeat, contradict, contradict, repeat):
        disturb(events, random)
    log = MemoryLog(num_partitions=1)
    for one in events:
        log.append(one.subject, one.value)

    project_in_pieces(connection, log, random)

    reference = fold((record.key, record.value) for record in log.records)
    assert differences(plain_tables(reference.tables), database_tables(migrated_url)) == []


def test_turns_of_the_first_version_have_the_rows_of_the_reference(
    migrated_url: str, connection: Connection
) -> None:
    random = Random(1)
    events = history("run", 1, Shape(turns=3, has_trouble=False))
    for _ in range(40):
        come_from_older_code(events, random)
    versions = [
        one.value.split(b"urn:cua:cua.rollout.turn_taken:")[1][:1]
        for one in events
        if b"urn:cua:cua.rollout.turn_taken:" in one.value
    ]
    assert set(versions) == {b"1", b"2"}
    log = MemoryLog()
    for one in events:
        log.append(one.subject, one.value)

    project_in_pieces(connection, log, random)

    reference = fold((record.key, record.value) for record in log.records)
    assert reference.count("parked") == 0
    inputs = [row.get("model_input_json") for row in reference.tables["obs"].values()]
    assert {len(shown["prompt_images"]) for shown in inputs if shown} == {1}
    assert differences(plain_tables(reference.tables), database_tables(migrated_url)) == []


def test_the_comparison_finds_a_single_changed_value(
    migrated_url: str, connection: Connection
) -> None:
    log = MemoryLog()
    for one in history("run", 1):
        log.append(one.subject, one.value)
    project_in_pieces(connection, log, Random(1))
    with connection, connection.cursor() as cursor:
        cursor.execute(
            "UPDATE cua.turn SET reward = 0.25 WHERE id = (SELECT min(id::text)::uuid FROM"
            " cua.turn)"
        )

    reference = fold((record.key, record.value) for record in log.records)

    found = differences(plain_tables(reference.tables), database_tables(migrated_url))
    assert len(found) == 1
    assert found[0].startswith("turn.reward ")
    assert found[0].endswith("expected 0.0, found 0.25")
