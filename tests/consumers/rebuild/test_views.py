"""Our views and comments after a rebuild: they read the live tables, and verify ignores them."""

from typing import Any
from uuid import UUID

import psycopg2.extras
import pytest

from consumers.database.connection import connected
from consumers.database.migrate import schema_differences
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.rebuild import build_into, rebuild
from consumers.rebuild.verify import verify
from schemas.arrays import decode_float32, decode_int32
from tests.reference_fold.histories import Shape
from tests.reference_fold.reference import fold
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryLog, MemoryReader

pytestmark = pytest.mark.services
SMALL = Shape(steps=2, groups=2, group_size=2, turns=2)


def query(url: str, statement: str) -> list[dict[str, Any]]:
    with (
        connected(url, "test") as connection,
        connection,
        connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor,
    ):
        cursor.execute(statement)
        return [dict(row) for row in cursor.fetchall()] if cursor.description else []


@pytest.fixture
def log(migrated_url: str) -> MemoryLog:
    made = memory_log(logged_events("a", "b", shape=SMALL))
    ProjectionLoop(MemoryReader(made), migrated_url).run_once()
    return made


def test_the_views_show_every_rollout_and_turn(migrated_url: str, log: MemoryLog) -> None:
    tables = fold((record.key, record.value) for record in log.records).tables
    shown = {row["id"]: row for row in query(migrated_url, "SELECT * FROM cua.rollout_summary")}
    assert shown.keys() == tables["rollout"].keys()
    used = {row["rollout_id"]: row for row in tables["sample"].values()}
    for key, row in tables["rollout"].items():
        found = shown[key]
        assert found["run_name"] == tables["training"][row["training_id"]]["run_name"]
        assert found["task_name"] == tables["task"][row["task_id"]]["name"]
        assert found["reward"] == row.get("reward")
        # The histories' sessions and completions are of steps that nobody tells of.
        source = tables[row["source_type"]].get(row[row["source_type"] + "_id"], {})
        expected = (source.get("generation"), source.get("step"))
        assert (found["generation"], found["step"]) == expected
        assert found["used"] == used.get(key, {}).get("used")
        assert found["outcome"] == (
            row["status"]
            if row["status"] != "completed"
            else "solved"
            if row["task_success"]
            else "not_solved"
        )
        judged = [table for table in tables["validation"].values() if table["rollout_id"] == key]
        assert found["verdict"] == (judged[0]["success"] if judged else None)
    assert {row["outcome"] for row in shown.values()} > {"solved", "not_solved"}

    turns = {row["id"]: row for row in query(migrated_url, "SELECT * FROM cua.turn_tokens")}
    assert turns.keys() == tables["turn"].keys()
    first = {
        table["turn_id"]: table for table in tables["action"].values() if table["action_index"] == 0
    }
    for key, row in turns.items():
        action = first[key]
        if action.get("tokens") is None:
            assert row["tokens"] is row["logprobs"] is None
            continue
        assert row["tokens"] == decode_int32(action["tokens"])
        assert row["logprobs"] == decode_float32(action["logprobs"])
        assert len(row["tokens"]) == row["num_tokens"]
    assert any(row["tokens"] for row in turns.values())


def test_the_highest_rank_gives_the_verdict(migrated_url: str, log: MemoryLog) -> None:
    (row,) = query(
        migrated_url, "SELECT id, verdict FROM cua.rollout_summary WHERE verdict LIMIT 1"
    )
    query(
        migrated_url,
        "INSERT INTO cua.validation SELECT gen_random_uuid(), 'scoring/x', rollout_id,"
        " validator_id, 5, validation_time, validation_query, NULL, NULL, false,"
        " execution_time, error_message, details_json, created_at FROM cua.validation WHERE"
        f" rollout_id = '{row['id']}'",
    )
    (again,) = query(
        migrated_url, f"SELECT verdict FROM cua.rollout_summary WHERE id = '{row['id']}'"
    )
    assert (row["verdict"], again["verdict"]) == (True, False)
    assert len(log.records) > 0


def test_a_named_schema_has_views_of_its_own_tables(migrated_url: str, log: MemoryLog) -> None:
    build_into(MemoryReader(log), migrated_url, "Just {one}", run_name="a")
    rows = query(migrated_url, 'SELECT DISTINCT run_name FROM "Just {one}".rollout_summary')
    assert [row["run_name"] for row in rows] == ["a"]
    query(migrated_url, 'DROP SCHEMA "Just {one}" CASCADE')


def test_verify_ignores_views_and_a_rebuild_brings_dropped_ones_back(
    migrated_url: str, log: MemoryLog
) -> None:
    query(migrated_url, "DROP VIEW cua.turn_tokens; DROP FUNCTION cua.decode_int32(text)")
    assert verify(MemoryReader(log), migrated_url).equal
    assert schema_differences(migrated_url) != []
    rebuild(MemoryReader(log), migrated_url)
    assert schema_differences(migrated_url) == []
    assert query(migrated_url, "SELECT tokens FROM cua.turn_tokens LIMIT 1") != []


def test_grants_on_views_stay(migrated_url: str, log: MemoryLog) -> None:
    role = f"reader_{UUID(int=len(log.records)).hex[:8]}_views"
    query(migrated_url, f"DROP ROLE IF EXISTS {role}; CREATE ROLE {role}")
    try:
        query(
            migrated_url,
            f"GRANT USAGE ON SCHEMA cua TO {role}; GRANT SELECT ON ALL TABLES IN SCHEMA cua TO"
            f" {role}",
        )
        rebuild(MemoryReader(log), migrated_url)
        found = query(
            migrated_url,
            f"SET ROLE {role}; SELECT count(*) AS n FROM cua.rollout_summary",
        )
        assert found[0]["n"] > 0
    finally:
        query(migrated_url, f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")
