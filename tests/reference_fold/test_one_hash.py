"""Whatever is done to the tables while a log grows, they end with the hash of a plain replay.

Histories x interleavings x duplicates x restarts x batch sizes x rebuilds in the middle x
retries and drops x parallel fills x replaced projectors. `make test-long` tries a thousand.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st

from consumers.database.connection import connected
from consumers.rebuild.hashing import hash_tables
from consumers.rebuild.rebuild import compare
from consumers.tables import ROW_TABLES, STATE_TABLES
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.cutting import cut_streams
from tests.reference_fold.disturbances import DISTURBANCES, Disturbance, garble
from tests.reference_fold.histories import Shape, history, interleaved
from tests.reference_fold.operations import OPERATIONS, Installation, project
from tests.reference_fold.reference import fold
from tests.reference_fold.reference_home import at_home
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.profiles import examples_of_part, in_parts

pytestmark = [pytest.mark.services, pytest.mark.slow]
SHAPES = st.builds(
    Shape,
    steps=st.just(1),
    groups=st.integers(1, 2),
    group_size=st.integers(1, 2),
    turns=st.integers(1, 2),
    has_trouble=st.booleans(),
    tells_everything=st.booleans(),
)


def empty(url: str) -> None:
    tables = "".join(
        f'DELETE FROM cua."{table.__tablename__}";' for table in (*ROW_TABLES, *STATE_TABLES)
    )
    with connected(url, "test") as connection, connection, connection.cursor() as cursor:
        cursor.execute(tables)


@in_parts()
def test_every_way_to_the_end_of_a_log_ends_with_one_hash(
    migrated_url: str, part: int | None
) -> None:
    num_tried = 0

    @settings(max_examples=examples_of_part(quick=6))
    @given(
        seeds=st.lists(st.integers(0, 2**32), min_size=1, max_size=2, unique=True),
        shape=SHAPES,
        disturbances=st.lists(st.sampled_from(DISTURBANCES), min_size=2, max_size=6),
        operations=st.lists(st.sampled_from(OPERATIONS), min_size=4, max_size=8),
        seed=st.integers(0, 2**32),
        partitions=st.integers(1, 14),
        is_cut=st.booleans(),
    )
    def ends_with_one_hash(**drawn: Any) -> None:
        nonlocal num_tried
        num_tried += 1
        empty(migrated_url)
        check(migrated_url, **drawn)

    (ends_with_one_hash if part is None else with_seed(part)(ends_with_one_hash))()

    assert num_tried >= examples_of_part(quick=6)


def check(
    url: str,
    seeds: list[int],
    shape: Shape,
    disturbances: list[Disturbance],
    operations: list[Callable[[Installation], None]],
    seed: int,
    partitions: int,
    *,
    is_cut: bool,
) -> None:
    random = Random(seed)
    events = list(
        interleaved([history(f"run-{number}", number, shape) for number in seeds], random)
    )
    if is_cut:
        events = cut_streams(events, random)
    # What cannot be read cannot be disturbed further.
    for disturb in sorted(disturbances, key=lambda disturbance: disturbance is garble):
        disturb(events, random)
    home = Installation(url, MemoryLog(num_partitions=partitions), events, random)

    for operation in operations:
        home.grow()
        home.done.append(operation.__name__)
        note(f"{operation.__name__} at {len(home.log.records)} records")
        operation(home)
    home.grow(whole=True)
    project(home)

    with connected(url, "test") as connection, connection.cursor() as cursor:
        live = hash_tables(cursor, "cua")
    plain = compare(MemoryReader(home.log), url)
    assert plain.different == []
    assert {name: table.rows for name, table in live.items()} == plain.tables
    own, _ = at_home(home.log.records, partitions)
    reference = fold(own)
    assert differences(plain_tables(reference.tables), database_tables(url)) == []
