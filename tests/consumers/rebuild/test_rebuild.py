"""The tables can be made again from the log at any time, and their readers do not notice."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg2
import pytest

from consumers.database.connection import connected
from consumers.database.location import libpq_url
from consumers.database.migrate import SCHEMA_LOCK, schema_differences
from consumers.database.readiness import make_ready
from consumers.errors import CuaProjectError, UsageError
from consumers.log.reader import TopicPartition
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.rebuild import RebuildReport, build_into, compare, rebuild
from consumers.rebuild.until import format_positions, parse_until
from consumers.rebuild.verify import verify
from schemas.ids import training_id
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.histories import LoggedEvent, Shape
from tests.reference_fold.reference import fold
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import BEGAN, MemoryLog, MemoryReader
from tests.support.postgres import execute
from tests.support.rebuilding import project

pytestmark = pytest.mark.services
SMALL = Shape(steps=1, groups=2, group_size=2, turns=2)


def rows(url: str, statement: str) -> list[tuple[object, ...]]:
    with connected(url, "test") as connection, connection, connection.cursor() as cursor:
        cursor.execute(statement)
        found: list[tuple[object, ...]] = cursor.fetchall()
        return found


def run(log: MemoryLog, url: str) -> RebuildReport:
    return rebuild(MemoryReader(log), url)


@pytest.fixture(scope="module")
def events() -> list[LoggedEvent]:
    return logged_events("a", "b", shape=SMALL)


def test_tables_that_nobody_touched_are_equal_and_no_row_of_them_is_written_again(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    log = memory_log(events)
    project(log, migrated_url)
    before = verify(MemoryReader(log), migrated_url)
    written = "SELECT array_agg(DISTINCT xmin::text) FROM cua.turn"
    by = rows(migrated_url, written)

    result = run(log, migrated_url)

    assert (result.equal, result.changed, result.events) == (True, 0, len(events))
    assert (result.was_empty, result.missing) == (False, [])
    assert rows(migrated_url, written) == by
    assert verify(MemoryReader(log), migrated_url) == before
    assert before.equal
    assert result.tables == {name: table.rows for name, table in before.tables.items()}
    assert schema_differences(migrated_url) == []


def test_an_empty_database_is_filled_with_the_same_hashes(
    migrated_url: str, database_url: str, events: list[LoggedEvent]
) -> None:
    log = memory_log(events)
    project(log, migrated_url)

    make_ready(database_url, embedded=False)
    result = run(log, database_url)

    assert (result.equal, result.changed, result.was_empty) == (True, 0, True)
    assert (
        verify(MemoryReader(log), database_url).tables
        == verify(MemoryReader(log), migrated_url).tables
    )
    assert schema_differences(database_url) == []


def test_changed_deleted_and_added_rows_are_named_and_healed(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    log = memory_log(events)
    project(log, migrated_url)
    ((changed, reward),) = rows(
        migrated_url,
        "SELECT id::text, reward FROM cua.rollout WHERE reward IS NOT NULL ORDER BY id LIMIT 1",
    )
    ((deleted,),) = rows(migrated_url, "SELECT id::text FROM cua.turn ORDER BY id LIMIT 1")
    added = "00000000-0000-0000-0000-000000000001"
    execute(
        migrated_url,
        f"UPDATE cua.rollout SET reward = 7.5 WHERE id = '{changed}'; DELETE FROM cua.turn WHERE id"
        f" = '{deleted}';INSERT INTO cua.validator SELECT '{added}', task_id, 'x', 'y', 'z',"
        " '{}', now() FROM cua.validator LIMIT 1",
    )

    found = verify(MemoryReader(log), migrated_url)

    assert not found.equal
    assert {
        (difference.table, difference.key, difference.column, difference.live, difference.replayed)
        for difference in found.differences
    } == {
        ("rollout", changed, "reward", "7.5", f"{reward:.0f}"),
        ("turn", deleted, None, "(no row)", "a row"),
        ("validator", added, None, "a row", "(no row)"),
    }
    compared = compare(MemoryReader(log), migrated_url)
    assert compared.different == ["validator", "rollout", "turn"]
    assert not verify(MemoryReader(log), migrated_url).equal
    result = run(log, migrated_url)
    assert (result.equal, result.changed) == (False, 3)
    assert compared.changed_rows == result.changed_rows == {"validator": 1, "rollout": 1, "turn": 1}
    assert verify(MemoryReader(log), migrated_url).equal


@contextmanager
def reading(url: str) -> Iterator[dict[str, object]]:
    """A reader that asks all the time; what it saw."""
    seen: dict[str, object] = {"reads": 0, "errors": [], "slowest_s": 0.0, "counts": []}
    stop = threading.Event()

    def read() -> None:
        connection = psycopg2.connect(libpq_url(url))
        connection.autocommit = True
        counts, errors = [], []
        slowest_s, reads = 0.0, 0
        with connection.cursor() as cursor:
            while not stop.is_set():
                began = time.monotonic()
                try:
                    cursor.execute(
                        "SELECT (SELECT count(*) FROM cua.turn), (SELECT count(*) FROM"
                        " cua.status_history)"
                    )
                    counts.append(cursor.fetchone())
                except psycopg2.Error as error:
                    errors.append(str(error))
                slowest_s = max(slowest_s, time.monotonic() - began)
                reads += 1
        connection.close()
        seen.update(reads=reads, errors=errors, slowest_s=slowest_s, counts=counts)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join(20)


def test_readers_and_a_running_projector_do_not_notice_a_rebuild(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    log = memory_log(events[:100])
    stop = threading.Event()
    projector = threading.Thread(
        target=ProjectionLoop(MemoryReader(log), migrated_url, batch_records=20).run_forever,
        args=(stop,),
    )
    projector.start()
    try:
        with reading(migrated_url) as seen:
            for number in range(4):
                start = 100 + number * 60
                memory_log(events[start : start + 60], log)
                assert run(log, migrated_url).equal
            memory_log(events[340:], log)
            deadline = time.monotonic() + 20
            while rows(
                migrated_url, "SELECT coalesce(sum(next_offset), 0) FROM cua.reader_position"
            ) != [(len(events),)]:
                assert time.monotonic() < deadline
                time.sleep(0.02)
    finally:
        stop.set()
        projector.join(20)

    assert seen["errors"] == []
    counts = seen["counts"]
    assert isinstance(counts, list)
    assert len(counts) > 10
    assert counts == sorted(counts), "a reader saw tables that held less than those before"
    reference = fold((record.key, record.value) for record in log.records)
    assert differences(plain_tables(reference.tables), database_tables(migrated_url)) == []
    assert verify(MemoryReader(log), migrated_url).equal


def test_a_rebuild_keeps_the_permissions_of_readers(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    role = "reader_" + migrated_url.rsplit("_", 1)[1]
    execute(
        migrated_url,
        f'CREATE ROLE "{role}"; GRANT USAGE ON SCHEMA cua TO "{role}"; GRANT SELECT ON cua.turn TO'
        f' "{role}";GRANT SELECT (id, status) ON cua.rollout TO "{role}"; GRANT SELECT ON cua.step'
        " TO PUBLIC",
    )
    try:
        run(memory_log(events), migrated_url)

        allowed = (
            f"SELECT has_schema_privilege('{role}', 'cua', 'USAGE'), has_table_privilege('{role}',"
            f" 'cua.turn', 'SELECT'), has_table_privilege('{role}', 'cua.obs', 'SELECT'),"
            f" has_table_privilege('{role}', 'cua.step', 'SELECT'), has_column_privilege('{role}',"
            f" 'cua.rollout', 'status', 'SELECT'), has_column_privilege('{role}', 'cua.rollout',"
            " 'reward', 'SELECT')"
        )
        assert rows(migrated_url, allowed) == [(True, True, False, True, True, False)]
    finally:
        execute(migrated_url, f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')


def test_a_log_without_its_beginning_is_refused_and_nothing_is_changed(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    log = memory_log(events)
    project(log, migrated_url)
    before = database_tables(migrated_url)
    log.first_kept[TopicPartition("cua.rollouts", 0)] = 5

    with pytest.raises(CuaProjectError, match=r"cua\.rollouts/0 begins at offset 5"):
        run(log, migrated_url)
    with pytest.raises(CuaProjectError, match="records were deleted"):
        verify(MemoryReader(log), migrated_url)

    assert database_tables(migrated_url) == before


def test_one_training_or_a_moment_is_built_beside_the_live_tables(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    log = memory_log(events)
    reader = MemoryReader(log)
    moment = BEGAN + timedelta(milliseconds=150)

    one = build_into(reader, migrated_url, "only_a", run_name="a")
    past = build_into(reader, migrated_url, "past", until=parse_until(moment.isoformat(), reader))
    same = build_into(
        reader, migrated_url, "same", until=parse_until(format_positions(past.positions), reader)
    )

    of_a = [
        event for event in events if f'"trainingid":"{training_id("a")}"'.encode() in event.value
    ]
    assert 0 < one.events == len(of_a) < len(events)
    expected = fold((item.subject, item.value) for item in of_a)
    assert differences(plain_tables(expected.tables), database_tables(migrated_url, "only_a")) == []
    assert past.events == same.events == 150
    expected = fold((record.key, record.value) for record in log.records[:150])
    assert differences(plain_tables(expected.tables), database_tables(migrated_url, "past")) == []
    assert database_tables(migrated_url, "same") == database_tables(migrated_url, "past")
    with pytest.raises(UsageError, match="the schema past exists"):
        build_into(reader, migrated_url, "past")
    for name in ("cua", "public", "pg_mine", "x" * 64, ""):
        with pytest.raises(UsageError, match=r"--into: the schema .* choose another name"):
            build_into(reader, migrated_url, name)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("yesterday", "'yesterday' is neither a time"),
        ("cua.training=3", "'cua.training=3' is not a position"),
        ("cua.training/99=3", "the log has no partition cua.training/99"),
        ("cua.training/{partition}=100000", "is beyond the log: that partition ends at"),
    ],
)
def test_an_until_that_is_not_in_the_log_is_a_usage_error(
    events: list[LoggedEvent], text: str, problem: str
) -> None:
    log = memory_log(events)
    partition = next(record.partition for record in log.records if record.topic == "cua.training")

    with pytest.raises(UsageError, match=re.escape(problem)):
        parse_until(text.format(partition=partition), MemoryReader(log))


def test_a_rebuild_beside_another_is_refused(migrated_url: str, events: list[LoggedEvent]) -> None:
    with connected(migrated_url, "migration") as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", (SCHEMA_LOCK,))

        with pytest.raises(CuaProjectError, match="another migration or rebuild is running; retry"):
            run(memory_log(events), migrated_url)


def test_verify_compares_one_moment_while_the_projector_goes_on(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    log = memory_log(events[:200])
    project(log, migrated_url)
    memory_log(events[200:], log)
    stop = threading.Event()
    projector = threading.Thread(
        target=ProjectionLoop(MemoryReader(log), migrated_url, batch_records=5).run_forever,
        args=(stop,),
    )
    projector.start()
    try:
        assert all(verify(MemoryReader(log), migrated_url).equal for _ in range(4))
    finally:
        stop.set()
        projector.join(20)
