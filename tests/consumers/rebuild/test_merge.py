"""Whatever was done to the rows by hand, a rebuild makes them again what the log says."""

import psycopg2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.database.connection import connected
from consumers.database.dependants import quoted
from consumers.database.shape import type_name
from consumers.rebuild.rebuild import compare, rebuild
from consumers.rebuild.verify import verify
from consumers.tables import ROW_TABLES, Base
from tests.reference_fold.histories import LoggedEvent, Shape
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import execute, one
from tests.support.rebuilding import project, run

pytestmark = pytest.mark.services

OTHER = {
    "uuid": "gen_random_uuid()",
    "text": "{} || 'x'",
    "integer": "{} + 1000",
    "bigint": "{} + 1000",
    "double precision": "'NaN'",
    "boolean": "NOT {}",
    "timestamp with time zone": "{} + interval '1 microsecond'",
    "jsonb": "'{{\"edited\": 1.00}}'",
}
"""Type -> another value of a column."""


TABLES = [Base.metadata.tables[f"cua.{table.__tablename__}"] for table in ROW_TABLES]
EDITS = [
    *(
        f'UPDATE cua."{table.name}" SET "{column.name}" ='
        f" {OTHER[type_name(column)].format(quoted(column.name))}"
        for table in TABLES
        for column in table.columns
    ),
    *(f'DELETE FROM cua."{table.name}"' for table in TABLES),
]
"""Of every column of every table of rows, and of the rows themselves."""


def edit(url: str, statement: str) -> None:
    """An edit that a constraint of ours refuses is none."""
    with connected(url, "test") as connection, connection.cursor() as cursor:
        try:
            cursor.execute(statement)
        except psycopg2.IntegrityError:
            connection.rollback()
        else:
            connection.commit()


def test_any_edits_of_any_tables_are_put_right_and_every_differing_row_is_counted(
    migrated_url: str, log: MemoryLog
) -> None:
    @settings(max_examples=6, deadline=None)
    @given(
        edits=st.lists(st.sampled_from(EDITS), min_size=1, max_size=6),
        share=st.sampled_from(["3", "8", "g"]),
    )
    def is_put_right(edits: list[str], share: str) -> None:
        for statement in edits:
            edit(migrated_url, f"{statement} WHERE md5(id::text) < '{share}'")
        found = verify(MemoryReader(log), migrated_url)
        rows = {(difference.table, difference.key) for difference in found.differences}

        report = rebuild(MemoryReader(log), migrated_url)

        assert not found.has_more
        assert (report.changed, report.equal) == (len(rows), not rows)
        assert set(report.different) == {table for table, _ in rows}
        assert verify(MemoryReader(log), migrated_url).equal

    is_put_right()


def test_rows_that_stand_in_each_others_way_are_put_right(
    migrated_url: str, log: MemoryLog
) -> None:
    """Two turns of a rollout have each other's number, which is unique."""
    execute(
        migrated_url,
        "UPDATE cua.turn SET turn = turn + 1000; UPDATE cua.turn SET turn = 1003 - turn WHERE turn"
        " IN (1001, 1002); UPDATE cua.turn SET turn = turn - 1000 WHERE turn > 1000",
    )
    run(log, migrated_url)
    assert verify(MemoryReader(log), migrated_url).equal


def test_a_row_whose_natural_key_was_edited_stays_the_same_row(
    migrated_url: str, log: MemoryLog
) -> None:
    execute(
        migrated_url,
        "CREATE TABLE public.notes (id uuid REFERENCES cua.turn ON DELETE CASCADE); INSERT INTO"
        " public.notes SELECT id FROM cua.turn; CREATE TABLE public.plain (id uuid REFERENCES"
        " cua.turn); INSERT INTO public.plain SELECT id FROM cua.turn; ALTER TABLE cua.turn ADD"
        " COLUMN mine text; UPDATE cua.turn SET mine = id::text, turn = turn + 100",
    )
    num_turns = one(migrated_url, "SELECT count(*) FROM cua.turn")

    assert run(log, migrated_url).changed_rows == {"turn": num_turns}

    assert verify(MemoryReader(log), migrated_url).equal
    kept = "SELECT count(*), bool_and(mine = cua.turn.id::text) FROM public.notes JOIN cua.turn"
    assert one(migrated_url, f"{kept} USING (id)") == (num_turns, True)


def test_numbers_that_moved_on_by_one_are_put_right(migrated_url: str, log: MemoryLog) -> None:
    """The last row's number is free, all the others' are another row's."""
    statuses = "SELECT count(*) FROM cua.status_history"
    before = one(migrated_url, statuses)
    execute(
        migrated_url,
        "UPDATE cua.status_history SET sequence = sequence + 1000; UPDATE cua.status_history SET"
        " sequence = sequence - 999",
    )

    assert run(log, migrated_url).changed_rows == {"status_history": before}

    assert verify(MemoryReader(log), migrated_url).equal


def test_a_row_that_left_a_partial_unique_key_comes_back_after_the_one_that_took_its_place(
    migrated_url: str,
) -> None:
    shape = Shape(steps=2, groups=1, group_size=1, turns=1)
    log = memory_log(logged_events("a", "b", shape=shape))
    project(log, migrated_url)
    ids = one(migrated_url, "SELECT array_agg(id::text ORDER BY id) FROM cua.eval")
    assert isinstance(ids, list)
    first, second, *_ = ids
    execute(
        migrated_url,
        f"UPDATE cua.eval SET kind = 'manual' WHERE id = '{first}'; UPDATE cua.eval AS other SET"
        " (training_id, generation, step, temperature, kind) = (SELECT training_id, generation,"
        f" step, temperature, 'scheduled' FROM cua.eval WHERE id = '{first}') WHERE id ="
        f" '{second}'",
    )

    run(log, migrated_url)

    assert verify(MemoryReader(log), migrated_url).equal


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("metrics_json", "jsonb_build_object('a', 1.00)"),
        ("reward", "'-0'"),
        ("reward", "'NaN'"),
    ],
)
def test_a_rebuild_is_as_exact_as_verify(
    migrated_url: str, log: MemoryLog, column: str, value: str
) -> None:
    """`=` takes 1.0 for 1.00 and 0 for -0; NaN equals itself."""
    execute(migrated_url, f"UPDATE cua.turn SET {column} = {value}")
    num_turns = one(migrated_url, "SELECT count(*) FROM cua.turn")

    assert not verify(MemoryReader(log), migrated_url).equal
    assert compare(MemoryReader(log), migrated_url).changed_rows == {"turn": num_turns}
    assert run(log, migrated_url).changed == num_turns
    assert verify(MemoryReader(log), migrated_url).equal
    assert run(log, migrated_url).changed == 0


def test_the_projections_own_tables_are_put_right_and_the_projector_goes_on(
    migrated_url: str, log: MemoryLog, events: list[LoggedEvent]
) -> None:
    before = one(migrated_url, "SELECT count(*) FROM cua.stream_position")
    execute(
        migrated_url,
        "DELETE FROM cua.stream_position WHERE stream LIKE 'rollout/%'; UPDATE cua.stream_position"
        " SET sequence = 1",
    )

    assert run(log, migrated_url).equal

    assert one(migrated_url, "SELECT count(*) FROM cua.stream_position") == before
    memory_log(events[-20:], log)
    project(log, migrated_url)
    assert verify(MemoryReader(log), migrated_url).equal
    assert one(migrated_url, "SELECT sum(num_duplicates) FROM cua.reader_position") == 0


def test_tables_that_are_behind_the_log_are_compared_and_left_where_they_are(
    migrated_url: str, log: MemoryLog, events: list[LoggedEvent]
) -> None:
    memory_log(events[-20:], log)
    execute(migrated_url, "UPDATE cua.turn SET reward = 7")
    position = "SELECT sum(next_offset) FROM cua.reader_position"

    assert run(log, migrated_url).different == ["turn"]

    assert one(migrated_url, position) == len(log.records) - 20
    assert verify(MemoryReader(log), migrated_url).equal
    project(log, migrated_url)
    assert one(migrated_url, position) == len(log.records)
    assert verify(MemoryReader(log), migrated_url).equal
