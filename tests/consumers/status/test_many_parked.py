"""Thousands of parked streams: `status` counts all, names the first, and reads each once."""

import json
from collections.abc import Sequence
from uuid import NAMESPACE_URL, UUID, uuid5

import pytest

from consumers.commands.status_text import NUM_UNFINISHED
from consumers.database.connection import Cursor, connected
from consumers.status.parked import LISTED, NUM_RECORDS, RECORDS, load_parked
from schemas.ids import training_id
from tests.reference_fold.histories import Shape
from tests.support.command import Call, call
from tests.support.logs import logged_events, memory_log
from tests.support.postgres import execute
from tests.support.rebuilding import project

__all__ = ["call"]

pytestmark = pytest.mark.services
SMALL = Shape(steps=1, groups=1, group_size=1, turns=1, has_trouble=False)
NAMED_BY_A = LISTED + 3
NAMED_BY_NOBODY = 2 * LISTED


def insert_parked(cursor: Cursor, streams: Sequence[str], named: UUID | None = None) -> None:
    """Parked streams, one a second, each with a record that may name a training."""
    value = json.dumps({"trainingid": None if named is None else str(named)}).encode()
    cursor.execute(
        "INSERT INTO cua.stream_position (stream, epoch, sequence, source, ends, refused, statuses,"
        " parked_since, dropped, num_waiting, drops) SELECT stream, 0, 0, '', '{}', '[]', '{}',"
        " (SELECT coalesce(max(parked_since), '2026-01-01Z') FROM cua.stream_position)"
        " + number * interval '1 second', false, 0, '{}' FROM unnest(%s) WITH ORDINALITY AS one"
        " (stream, number)",
        (list(streams),),
    )
    cursor.execute(
        "INSERT INTO cua.unapplied_record (log_id, topic, partition, log_offset, state, kind,"
        " reason, stream, value, appended_at) SELECT 'log', 'cua.rollouts', 0, (SELECT count(*)"
        " FROM cua.unapplied_record) + number, 'parked', 'invalid', '', stream, %s, now() FROM"
        " unnest(%s) WITH ORDINALITY AS one (stream, number)",
        (value, list(streams)),
    )


def rollouts(name: str, number: int) -> list[str]:
    return [f"rollout/{uuid5(NAMESPACE_URL, f'{name} {index}')}" for index in range(number)]


def test_every_parked_stream_is_counted_and_the_first_ones_are_named(
    call: Call, migrated_url: str
) -> None:
    project(memory_log(logged_events("a", "b", shape=SMALL)), migrated_url)
    execute(migrated_url, "UPDATE cua.projection SET log_id = NULL")
    execute(migrated_url, "DELETE FROM cua.reader_position")
    of_a, of_nobody = rollouts("a", NAMED_BY_A), rollouts("nobody", NAMED_BY_NOBODY)
    unborn = [f"training/{training_id(f'never {index}')}" for index in range(LISTED + 5)]
    with connected(migrated_url, "test") as connection, connection, connection.cursor() as cursor:
        insert_parked(cursor, of_a, training_id("a"))
        insert_parked(cursor, of_nobody)
        insert_parked(cursor, unborn)
        cursor.execute(
            "UPDATE cua.stream_position SET parked_since = '2026-02-01Z' WHERE stream ="
            " 'rollout/' || (SELECT min(id::text) FROM cua.rollout WHERE training_id = %s)",
            (str(training_id("b")),),
        )

    report = call("status", "--json").json
    total = NAMED_BY_A + NAMED_BY_NOBODY + len(unborn) + 1
    assert report["num_parked_streams"] == total
    assert [item["stream"] for item in report["parked_streams"]] == of_a[:LISTED]
    since = {
        item["run_name"]: item["parked_since"] for item in report["trainings"] if item["parked"]
    }
    assert since.pop("a") == "2026-01-01T00:00:01+00:00"
    assert since.pop("b") == "2026-02-01T00:00:00+00:00"
    assert list(since) == unborn[:LISTED]
    # The records of the first LISTED streams without a row were read, and name a training.
    (line,) = [line for line in call("status").out.splitlines() if line.startswith("parked ")]
    rest = NAMED_BY_A - LISTED + NAMED_BY_NOBODY - 5
    assert line.endswith(
        f"{of_a[LISTED]}, {of_a[-2]}, {of_a[-1]}, {', '.join(of_nobody[:2])} and {rest} more"
    )


def test_the_table_for_people_is_of_a_bounded_length(call: Call, migrated_url: str) -> None:
    project(memory_log(logged_events("a", shape=SMALL)), migrated_url)
    execute(migrated_url, "UPDATE cua.projection SET log_id = NULL")
    execute(migrated_url, "DELETE FROM cua.reader_position")
    execute(
        migrated_url,
        "INSERT INTO cua.training SELECT copy.* FROM cua.training AS one, generate_series(1, 60) AS"
        " n, json_populate_record(one, json_build_object('id', md5(n::text)::uuid, 'run_name',"
        " 'other-' || n, 'status', 'paused')) AS copy",
    )
    few, everything = (call("status", *flags).out for flags in ((), ("--all",)))
    assert (few.count("other-"), everything.count("other-")) == (NUM_UNFINISHED, 60)
    assert few.endswith(f"{60 - NUM_UNFINISHED} more not shown (10 paused); --all lists them\n")
    assert len(call("status", "--json").json["trainings"]) == 61


class CountingCursor(Cursor):  # type: ignore[misc]  # psycopg2's stubs
    """Counts the rows that it hands out."""

    num_rows = 0

    def fetchall(self) -> list[tuple[object, ...]]:
        rows: list[tuple[object, ...]] = super().fetchall()
        self.num_rows += len(rows)
        return rows


def test_the_rows_that_are_fetched_do_not_grow_with_the_parked_streams(migrated_url: str) -> None:
    fetched: list[int] = []
    with connected(migrated_url, "test") as connection, connection:
        for name in "first", "second", "third":
            with connection.cursor(cursor_factory=CountingCursor) as cursor:
                insert_parked(cursor, rollouts(name, 1_000))
                assert load_parked(cursor).total == 1_000 * (len(fetched) + 1)
                fetched.append(cursor.num_rows)
    assert fetched == [3 * LISTED] * 3


def test_the_records_of_a_stream_are_found_by_the_stream_alone_without_statistics(
    migrated_url: str,
) -> None:
    streams = rollouts("many", 2_000)
    with connected(migrated_url, "test") as connection, connection, connection.cursor() as cursor:
        insert_parked(cursor, streams)
        query = "EXPLAIN (FORMAT JSON) " + RECORDS.format(schema="cua")
        cursor.execute(query, (streams[:LISTED], NUM_RECORDS, 1_000))
        plan = json.dumps(cursor.fetchone())
    assert "ix_unapplied_record_stream" in plan
    assert "ix_unapplied_record_state" not in plan
