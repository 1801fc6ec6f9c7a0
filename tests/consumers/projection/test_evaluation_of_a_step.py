"""An evaluation under a step's id has no rows, whichever comes first; the step's group is its own.

Group ids hash their source's id and number, and the id of an evaluation started by hand proves
nothing: a stranger's would make the rows of the step's groups.
"""

import json
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from consumers.database.connection import connected
from consumers.fold.parse import parse_record
from consumers.projection.loop import ProjectionLoop
from consumers.projection.schema import ProjectedSchema
from consumers.projection.write import removal_commands, warn_without_rows
from consumers.rebuild.verify import verify
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.disturbances import pose_as_step
from tests.reference_fold.histories import LoggedEvent, Shape, history
from tests.reference_fold.reference import fold
from tests.reference_fold.test_one_hash import empty
from tests.support.logs import memory_log
from tests.support.memory_log import MemoryLog, MemoryReader

TRAINING = history("rightful", 1, Shape(steps=1, groups=1, group_size=1, turns=1))
ORDERS = ["the step first", "the evaluation first", "mixed"]


def with_stranger(order: str, seed: int) -> list[LoggedEvent]:
    """The training and an evaluation under the id of its step."""
    events = list(TRAINING)
    pose_as_step(events, Random(seed))
    if order == "mixed":
        return events
    ours, strangers = list(TRAINING), [event for event in events if event not in TRAINING]
    return ours + strangers if order == "the step first" else strangers + ours


def step_of(events: list[LoggedEvent]) -> str:
    (stranger,) = {
        event.subject for event in events if json.loads(event.value)["source"] == "//stranger/1"
    }
    return stranger.partition("/")[2]


@pytest.mark.services
@pytest.mark.parametrize(
    ("order", "batch_records", "seed"),
    [
        # Both in one batch, and in batches of their own, in every order.
        *product(ORDERS, [1, 400], [1]),
        # Some of the one with some of the other, at other places.
        ("mixed", 3, 2),
        ("mixed", 3, 3),
    ],
)
def test_the_tables_are_those_of_the_training_alone(
    migrated_url: str, order: str, batch_records: int, seed: int
) -> None:
    empty(migrated_url)
    events = with_stranger(order, seed)
    log = memory_log(events)
    ProjectionLoop(MemoryReader(log), migrated_url, batch_records=batch_records).run_once()

    alone = fold((item.subject, item.value) for item in TRAINING)
    tables = database_tables(migrated_url)

    assert differences(plain_tables(alone.tables), tables) == []
    assert any(row.get("step_id") == step_of(events) for row in tables["group"].values())
    assert verify(MemoryReader(log), migrated_url).equal


@pytest.mark.services
@pytest.mark.parametrize("batch_records", [1, 400])
def test_the_same_facts_under_an_id_of_their_own_have_rows(
    migrated_url: str, batch_records: int
) -> None:
    empty(migrated_url)
    events = with_stranger("the evaluation first", 1)
    owner = step_of(events)
    log = memory_log([event for event in events if event.subject == f"evaluation/{owner}"])
    ProjectionLoop(MemoryReader(log), migrated_url, batch_records=batch_records).run_once()

    tables = database_tables(migrated_url)

    assert [len(tables[name]) for name in ("eval", "baseline", "group")] in ([1, 0, 1], [0, 1, 1])
    expected = fold((record.key, record.value) for record in log.records)
    assert differences(plain_tables(expected.tables), tables) == []


@pytest.mark.services
@pytest.mark.parametrize("batch_records", [1, 400])
@pytest.mark.parametrize("order", ORDERS)
def test_the_projectors_log_names_the_evaluation_once(
    migrated_url: str, order: str, batch_records: int, caplog: pytest.LogCaptureFixture
) -> None:
    empty(migrated_url)
    warn_without_rows.cache_clear()
    events = with_stranger(order, 1)
    ProjectionLoop(
        MemoryReader(memory_log(events)), migrated_url, batch_records=batch_records
    ).run_once()

    told = [record.message for record in caplog.records if "has no rows" in record.message]
    assert len(told) == 1
    assert told[0].startswith(f"the evaluation {step_of(events)} has no rows: its id is that of a")


@pytest.mark.services
def test_a_step_without_such_an_evaluation_reads_nothing_that_grows_with_history(
    migrated_url: str,
) -> None:
    empty(migrated_url)
    log = memory_log(TRAINING)
    ProjectionLoop(MemoryReader(log), migrated_url).run_once()
    (command,) = removal_commands("cua", [str(uuid4())])

    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {command.statement}", (command.data,))
        ((((plan,),),)) = cursor.fetchall()
        connection.rollback()

    loops = {name: num for name, num in scans(plan["Plan"]) if name in {"group", "status_history"}}
    assert loops == {"group": 0, "status_history": 0}


def scans(plan: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """(table, how often it is read) of a plan."""
    if plan["Node Type"].endswith("Scan") and "Relation Name" in plan:
        yield plan["Relation Name"], plan["Actual Loops"]
    for part in plan.get("Plans", ()):
        yield from scans(part)


@pytest.mark.services
def test_a_step_whose_batch_is_not_committed_yet_is_known(migrated_url: str) -> None:
    empty(migrated_url)
    log = memory_log(with_stranger("the step first", 1), MemoryLog(num_partitions=1))
    records = [parse_record(record) for record in log.records]
    training = [record for record in records if record.record.topic != "cua.training"]
    shared = [record for record in records if record.record.topic == "cua.training"]
    strangers = [
        item for item in shared if item.envelope and item.envelope.source == "//stranger/1"
    ]
    ours = [*training, *(item for item in shared if item not in strangers)]

    with connected(migrated_url, "test") as writer, connected(migrated_url, "test") as lookups:
        schema = ProjectedSchema(writer, "cua", log.log_id)
        schema.load()
        batches = [schema.fold(ours, lookups), schema.fold(strangers, lookups)]
        lookups.rollback()
        for batch in batches:
            schema.commit(batch)

    alone = fold((item.subject, item.value) for item in TRAINING)
    assert differences(plain_tables(alone.tables), database_tables(migrated_url)) == []
