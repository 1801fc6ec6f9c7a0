"""Whatever history, disturbances, batches and restarts, the tables equal the reference fold's."""

import json
from collections.abc import Iterator
from contextlib import closing
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consumers.database.connection import Connection, connect
from consumers.fold.parse import parse_record
from consumers.projection.schema import ProjectedSchema
from consumers.status import count_unapplied
from consumers.tables import ROW_TABLES, STATE_TABLES
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.cutting import cut_streams
from tests.reference_fold.disturbances import (
    DISTURBANCES,
    FACTS_ABOUT_ENTITIES,
    Disturbance,
    come_from_older_code,
)
from tests.reference_fold.histories import LoggedEvent, Shape, history, interleaved
from tests.reference_fold.reference import fold
from tests.reference_fold.reference_home import at_home
from tests.reference_fold.strays import append_with_strays
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
        schema.apply([parse_record(record, log.log_id) for record in left[:size]])
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
    partitions=st.integers(1, 14),
    strays=st.integers(0, 6),
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
    strays: int,
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
    append_with_strays(log, events, strays, random)

    project_in_pieces(connection, log, random)

    own, num_foreign = at_home(log.records, partitions)
    reference = fold(own)
    assert differences(plain_tables(reference.tables), database_tables(migrated_url)) == []
    with connection, connection.cursor() as cursor:
        unapplied = count_unapplied(cursor)
        cursor.execute("SELECT count(*) FROM cua.stream_position WHERE stream LIKE 'record/%'")
        assert cursor.fetchall() == [(0,)]
    assert unapplied.foreign == num_foreign
    assert (unapplied.parked, unapplied.duplicates, unapplied.fenced) == tuple(
        reference.count(name) for name in ("parked", "duplicates", "fenced")
    )
    assert unapplied.gaps == sum(bool(stream.waiting) for stream in reference.streams.values())


def said_by_a_stranger(fact: dict[str, Any], stranger: str) -> list[LoggedEvent]:
    """A whole training of its own, whose stream then says this."""
    shape = Shape(steps=1, groups=1, group_size=1, turns=1, has_trouble=False)
    events = history(stranger, 1, shape)
    kind = fact["subject"].partition("/")[0]
    own = [event for event in events if event.subject.startswith(f"{kind}/")]
    last = json.loads(own[-1].value)
    said = {name: fact[name] for name in ("type", "dataschema", "data")}
    event = last | said | {"sequence": last["sequence"] + 1}
    events.append(LoggedEvent(last["subject"], json.dumps(event).encode()))
    return events


@pytest.mark.parametrize("comes_first", [True, False])
def test_a_fact_about_another_streams_row_is_parked_in_whatever_order_it_comes(
    migrated_url: str, connection: Connection, comes_first: bool
) -> None:
    rightful, seed = [], 0
    facts: dict[str, dict[str, Any]] = {}
    while facts.keys() != FACTS_ABOUT_ENTITIES:
        rightful += history(f"rightful-{seed}", seed, Shape(steps=3))
        for one in rightful:
            event = json.loads(one.value)
            if (
                event["type"] in FACTS_ABOUT_ENTITIES
                and event["data"].get("step_id", 0) is not None
            ):
                facts.setdefault(event["type"], event)
        seed += 1
    strangers = [
        said_by_a_stranger(fact, f"stranger-{number}") for number, fact in enumerate(facts.values())
    ]
    own = [event for events in strangers for event in events[:-1]]
    said = [events[-1] for events in strangers]
    log = MemoryLog(num_partitions=1)
    for one in [*own, *said, *rightful] if comes_first else [*own, *rightful, *said]:
        log.append(one.subject, one.value)

    project_in_pieces(connection, log, Random(seed))

    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT stream, type FROM cua.unapplied_record")
        unapplied = cursor.fetchall()
    assert sorted(unapplied) == sorted(
        (one.subject, type_) for one, type_ in zip(said, facts, strict=True)
    )
    alone = fold((item.subject, item.value) for item in [*own, *rightful])
    assert alone.count("parked") == 0
    assert differences(plain_tables(alone.tables), database_tables(migrated_url)) == []


def stated_again(
    events: list[LoggedEvent], type_: str, distance: int, **data: object
) -> list[LoggedEvent]:
    """The first fact of a type once more, so many events of its stream later."""
    at = next(at for at, one in enumerate(events) if f'"{type_}"'.encode() in one.value)
    event = json.loads(events[at].value)
    stream = [item for item in events if item.subject == event["subject"]]
    index = min(stream.index(events[at]) + distance, len(stream))
    again = event | {"data": event["data"] | data}
    told = [json.loads(item.value) for item in stream]
    told = [*told[:index], again, *told[index:]]
    numbered = [
        LoggedEvent(event["subject"], json.dumps(one | {"sequence": number}).encode())
        for number, one in enumerate(told, start=1)
    ]
    return [item for item in events if item.subject != event["subject"]] + numbered


@pytest.mark.parametrize(
    ("distance", "size", "restarts"),
    [
        # Known from the same batch, the one before, or the tables: without and after a restart.
        (1, 400, False),
        (1000, 400, False),
        (1, 1, False),
        (1000, 1, False),
        (1, 1, True),
    ],
)
def test_what_has_ended_may_be_said_again_and_is_no_transition(
    migrated_url: str, connection: Connection, distance: int, size: int, *, restarts: bool
) -> None:
    """The stream has forgotten the step or group by then."""
    shape = Shape(steps=2, groups=2, group_size=1, turns=1, has_trouble=False)
    log = MemoryLog(num_partitions=1)
    for number, type_ in enumerate(("cua.group.finished", "cua.step.finished")):
        events = history(f"run-{number}", number, shape)
        changed = {"metrics": {"said": "again"}}
        for item in stated_again(events, type_, distance, **changed):
            log.append(item.subject, item.value)

    schema = ProjectedSchema(connection, "cua", log.log_id)
    schema.load()
    for start in range(0, len(log.records), size):
        records = log.records[start : start + size]
        schema.apply([parse_record(record, log.log_id) for record in records])
        if restarts:
            schema.load()

    reference = fold((record.key, record.value) for record in log.records)
    assert reference.count("parked") == 0
    said = [
        row["metrics_json"] for name in ("group", "step") for row in reference.tables[name].values()
    ]
    assert said.count({"said": "again"}) == 2
    assert differences(plain_tables(reference.tables), database_tables(migrated_url)) == []


def said_by_its_own_stream(
    events: list[LoggedEvent], fact: str, type_: str, **data: object
) -> list[LoggedEvent]:
    """As the stream's next event after a fact, one of another type about the same group."""
    at = next(at for at, one in enumerate(events) if f'"{fact}"'.encode() in one.value)
    event = json.loads(events[at].value)
    said = event | {
        "type": type_,
        "dataschema": f"urn:cua:{type_}:1",
        "sequence": event["sequence"] + 1,
        "data": {"group_id": event["data"]["group_id"]} | data,
    }
    stream = [item for item in events if item.subject == event["subject"]]
    until = stream.index(events[at]) + 1
    return [*stream[:until], LoggedEvent(event["subject"], json.dumps(said).encode())]


@pytest.mark.parametrize("size", [1, 400])
def test_what_has_ended_does_not_end_in_another_way(connection: Connection, size: int) -> None:
    shape = Shape(steps=1, groups=1, group_size=1, turns=1, has_trouble=False)
    ended_at = "2026-01-01T00:00:00Z"
    failed = {"completed_rollouts": 0, "error_message": "no", "ended_at": ended_at}
    events = said_by_its_own_stream(
        history("run", 1, shape), "cua.group.finished", "cua.group.failed", **failed
    )
    log = MemoryLog(num_partitions=1)
    for event in events:
        log.append(event.subject, event.value)
    schema = ProjectedSchema(connection, "cua", log.log_id)
    schema.load()
    for start in range(0, len(log.records), size):
        records = log.records[start : start + size]
        schema.apply([parse_record(record, log.log_id) for record in records])

    assert fold((event.subject, event.value) for event in events).count("parked") == 1
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT reason FROM cua.unapplied_record")
        assert cursor.fetchall() == [("group cannot go from completed to failed",)]


def test_turns_of_the_first_version_have_the_rows_of_the_reference(
    migrated_url: str, connection: Connection
) -> None:
    random = Random(1)
    events = history("run", 1, Shape(turns=3, has_trouble=False))
    for _ in range(40):
        come_from_older_code(events, random)
    versions = [
        event.value.split(b"urn:cua:cua.rollout.turn_taken:")[1][:1]
        for event in events
        if b"urn:cua:cua.rollout.turn_taken:" in event.value
    ]
    assert set(versions) == {b"1", b"2"}
    log = MemoryLog()
    for event in events:
        log.append(event.subject, event.value)

    project_in_pieces(connection, log, random)

    reference = fold((record.key, record.value) for record in log.records)
    assert reference.count("parked") == 0
    seen = [row for row in reference.tables["obs"].values() if row.get("screenshot_uri")]
    inputs = [row.get("model_input_json") for row in seen]
    assert {len(shown["prompt_images"]) for shown in inputs if shown} == {1}
    assert differences(plain_tables(reference.tables), database_tables(migrated_url)) == []


def test_the_comparison_finds_a_single_changed_value(
    migrated_url: str, connection: Connection
) -> None:
    log = MemoryLog()
    for event in history("run", 1):
        log.append(event.subject, event.value)
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


def test_a_row_that_is_made_twice_at_a_logs_end_leaves_nothing_in_the_reference() -> None:
    events = history("run", 1, Shape(steps=1, groups=1, group_size=1, turns=1, has_trouble=False))
    at = next(at for at, one in enumerate(events) if b'"cua.rollout.turn_taken"' in one.value)
    again = json.loads(events[at].value)
    again["sequence"] += 1
    told = [*events[: at + 1], LoggedEvent(events[at].subject, json.dumps(again).encode())]

    reference = fold((item.subject, item.value) for item in told)

    assert reference.count("parked") == 1
    alone = fold((item.subject, item.value) for item in told[:-1])
    assert reference.tables == alone.tables
