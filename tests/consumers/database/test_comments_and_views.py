"""Every table and column explains itself in SQL, and views show what people ask for."""

import math
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import psycopg2
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg2.extensions import cursor as Cursor  # noqa: N812

from consumers.cli import cli
from consumers.database.connection import connect, schema_engine
from consumers.database.known_revisions import newest_revision
from consumers.database.migrate import migrate, schema_differences
from consumers.database.repeatable import mending_command, write_repeatable
from consumers.database.shape import missing
from consumers.errors import CuaProjectError
from consumers.rebuild.side_schema import finish_tables, make_tables
from consumers.tables import OPS_TABLES, ROW_TABLES, STATE_TABLES
from consumers.tables.comments import commented_metadata
from schemas.arrays import decode_float32, decode_int32, encode_float32, encode_int32
from tests.support.paths import ROOT

UNCOMMENTED = (
    "SELECT format('%I.%I.%I', table_schema, table_name, column_name) FROM"
    " information_schema.columns WHERE table_schema = ANY(%s)"
    " AND coalesce(col_description(format('%I.%I', table_schema, table_name)::regclass,"
    " ordinal_position), '') = ''"
).replace("%I", "%%I")
UNCOMMENTED_TABLES = (
    "SELECT relname FROM pg_class WHERE relnamespace::regnamespace::text = ANY(%s) AND relkind IN"
    " ('r', 'v') AND coalesce(obj_description(oid, 'pg_class'),"
    " '') = ''"
)


@pytest.fixture
def cursor(migrated_url: str) -> Iterator[Cursor]:
    with closing(connect(migrated_url, "test")) as connection:
        connection.autocommit = True
        with connection.cursor() as opened:
            yield opened


def test_every_table_and_column_has_a_sentence() -> None:
    metadata = commented_metadata()
    missing = [
        f"{table.name}.{column.name}"
        for table in metadata.tables.values()
        for column in table.columns
        if not column.comment
    ]
    assert missing == []
    assert len(metadata.tables) == len((*ROW_TABLES, *STATE_TABLES, *OPS_TABLES))
    assert all(table.comment for table in metadata.tables.values())


@pytest.mark.services
def test_a_migrated_and_a_rebuilt_schema_have_every_comment(
    migrated_url: str, cursor: Cursor
) -> None:
    make_tables(migrated_url, "beside")
    finish_tables(migrated_url, "beside")
    ours = (["cua", "cua_ops", "beside"],)
    for query in (UNCOMMENTED, UNCOMMENTED_TABLES):
        cursor.execute(query, ours)
        assert cursor.fetchall() == []
    cursor.execute("SELECT col_description('cua.rollout'::regclass, 1), obj_description(oid) FROM"
        " pg_class WHERE oid = 'cua.rollout'::regclass")  # fmt: skip
    (column, table) = cursor.fetchone() or ("", "")
    assert column == "Row id: a UUIDv5 of the natural key."
    assert table.startswith("One attempt; a retry is another row.")


@pytest.mark.services
def test_migrate_mends_views_and_check_names_them(migrated_url: str, cursor: Cursor) -> None:
    cursor.execute("DROP VIEW cua.turn_tokens; DROP FUNCTION cua.decode_float32(text)")
    found = schema_differences(migrated_url)
    assert sorted(line.split(":")[0] for line in found) == ["add_function", "add_view"]
    assert mending_command(found) == "migrate"

    assert migrate(migrated_url) == (newest_revision(), newest_revision())

    assert schema_differences(migrated_url) == []

    # With a table that differs as well, it is a rebuild that mends both.
    cursor.execute("DROP VIEW cua.turn_tokens; ALTER TABLE cua.turn DROP COLUMN reward CASCADE")
    assert mending_command(schema_differences(migrated_url)) == "rebuild"


@pytest.mark.services
def test_a_comment_of_another_release_is_no_difference_and_migrate_writes_it(
    migrated_url: str, cursor: Cursor
) -> None:
    comments = (
        "SELECT col_description('cua.turn'::regclass, attnum),"
        " obj_description('cua.step'::regclass, 'pg_class'),"
        " col_description('cua.session_summary'::regclass, 1) FROM pg_attribute"
        " WHERE attrelid = 'cua.turn'::regclass AND attname = 'reward'"
    )
    cursor.execute(comments)
    written = cursor.fetchone()
    cursor.execute(
        "COMMENT ON COLUMN cua.turn.reward IS 'wrong'; COMMENT ON TABLE cua.step IS NULL;"
        "COMMENT ON COLUMN cua.session_summary.rollout_id IS 'of the last release'"
    )
    assert schema_differences(migrated_url) == []
    finding = CliRunner().invoke(cli, ["migrate", "--check"], env={"DATABASE_URL": migrated_url})
    assert (finding.exit_code, finding.stdout) == (
        0,
        "the schema matches the tables' definition\n",
    )

    migrate(migrated_url)

    cursor.execute(comments)
    assert cursor.fetchone() == written
    assert written is not None
    assert all(written)


@pytest.mark.services
def test_alembic_writes_no_revision_for_a_comment(migrated_url: str, cursor: Cursor) -> None:
    cursor.execute("COMMENT ON COLUMN cua.turn.reward IS 'of the last release'")
    checked = subprocess.run(
        [sys.executable, "-m", "alembic", "check"],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": migrated_url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, "No new upgrade operations" in checked.stdout) == (0, True), (
        checked.stdout + checked.stderr
    )


@pytest.mark.services
def test_a_view_with_other_columns_is_replaced_unless_a_users_view_stands_on_it(
    migrated_url: str, cursor: Cursor
) -> None:
    cursor.execute(
        "DROP VIEW cua.rollout_summary; DROP FUNCTION cua.rollout_summary_rows();"
        "CREATE FUNCTION cua.rollout_summary_rows() RETURNS TABLE (older integer, rollout_id text)"
        " LANGUAGE sql AS $$SELECT 1, 'x'$$;"
        "CREATE VIEW cua.rollout_summary AS SELECT * FROM cua.rollout_summary_rows();"
        "COMMENT ON VIEW cua.rollout_summary IS 'x';"
        "COMMENT ON FUNCTION cua.rollout_summary_rows() IS 'x';"
        "CREATE VIEW public.mine AS SELECT older FROM cua.rollout_summary"
    )
    with pytest.raises(CuaProjectError, match=r"rollout_summary.* view mine depends .*drop them"):
        migrate(migrated_url)
    cursor.execute("DROP VIEW public.mine")
    migrate(migrated_url)
    assert schema_differences(migrated_url) == []


@pytest.mark.services
def test_a_view_is_in_nobodys_way(migrated_url: str, cursor: Cursor) -> None:
    for table in ("rollout", "turn", "action", "step"):
        cursor.execute(f"ALTER TABLE cua.{table} DROP COLUMN id")
        cursor.execute(f"DROP TABLE cua.{table}")
    assert "add_view" not in {line.split(":")[0] for line in schema_differences(migrated_url)}


@pytest.mark.services
def test_the_groups_have_a_name_that_sql_takes_without_quotes(cursor: Cursor) -> None:
    cursor.execute("SELECT * FROM cua.rollout_group")
    of_view = [each.name for each in cursor.description or ()]
    cursor.execute('SELECT * FROM cua."group"')
    assert of_view == ["run_name", *(each.name for each in cursor.description or ())]


@pytest.mark.services
def test_a_condition_on_a_view_reaches_the_tables_indexes(cursor: Cursor) -> None:
    cursor.execute("SET enable_seqscan = off")
    cursor.execute(
        "EXPLAIN SELECT status FROM cua.rollout_summary WHERE training_id ="
        " '00000000-0000-0000-0000-000000000000'"
    )
    plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "ix_rollout_training_id" in plan
    assert "Function Scan" not in plan


@pytest.mark.services
@pytest.mark.parametrize(
    ("view", "condition", "index"),
    [
        ("rollout_group", "training_id", "ix_group_training_id"),
        ("session_summary", "entry_row_id", "ix_session_entry_id"),
        ("completion_summary", "entry_row_id", "ix_completion_entry_id"),
        ("sql_turn", "rollout_row_id", "uq_turn_rollout_id_turn"),
        ("skill_progress", "training_id", "uq_skill_success_training_id_evaluation_id_skill"),
        ("skill_progress", "evaluation_id", "ix_skill_success_evaluation_id"),
    ],
)
def test_the_obvious_conditions_on_what_sql_agents_did_reach_an_index(
    cursor: Cursor, view: str, condition: str, index: str
) -> None:
    cursor.execute("SET enable_seqscan = off")
    cursor.execute(
        f"EXPLAIN SELECT * FROM cua.{view} WHERE {condition} ="
        " '00000000-0000-0000-0000-000000000000'"
    )
    plan = "\n".join(line for (line,) in cursor.fetchall())
    assert index in plan, plan
    assert "Function Scan" not in plan


@pytest.mark.services
def test_writing_twice_writes_nothing(migrated_url: str) -> None:
    engine = schema_engine(migrated_url)
    with engine.begin() as connection:
        before = connection.scalar(sa.text("SELECT pg_current_xact_id_if_assigned()"))
        write_repeatable(connection)
        assert before is None
        assert connection.scalar(sa.text("SELECT pg_current_xact_id_if_assigned()")) is None


@pytest.mark.services
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    ids=st.lists(st.integers(-(2**31), 2**31 - 1), max_size=9),
    bits=st.lists(
        st.integers(0, 2**32 - 1)
        | st.sampled_from(
            [0, 1, 2**31, 0x7F800000, 0xFF800000, 0x7FC00000, 0x007FFFFF, 0x00800000]
        ),
        max_size=9,
    ),
)
def test_sql_decodes_what_python_encodes(cursor: Cursor, ids: list[int], bits: list[int]) -> None:
    numbers = list(struct.unpack(f"<{len(bits)}f", struct.pack(f"<{len(bits)}I", *bits)))
    texts = encode_int32(ids), encode_float32(numbers)
    cursor.execute(
        "SELECT cua.decode_int32(%s), cua.decode_float32(%s)::float8[], cua.decode_float32(NULL)",
        texts,
    )
    tokens, logprobs, nothing = cursor.fetchone() or ([], [], "")
    assert tokens == ids == decode_int32(texts[0])
    assert nothing is None
    expected = decode_float32(texts[1])
    assert len(logprobs) == len(expected)
    for found, number in zip(logprobs, expected, strict=True):
        assert found == number or (math.isnan(found) and math.isnan(number))
        if number == 0:
            assert math.copysign(1, found) == math.copysign(1, number)


@pytest.mark.services
def test_text_that_is_no_base64_is_an_error_of_the_query_alone(cursor: Cursor) -> None:
    with pytest.raises(psycopg2.DataError):
        cursor.execute("SELECT cua.decode_int32('%%%')")


@pytest.mark.services
def test_migrate_leaves_a_missing_schema_to_rebuild(migrated_url: str, cursor: Cursor) -> None:
    cursor.execute("DROP SCHEMA cua CASCADE")
    assert migrate(migrated_url) == (newest_revision(), newest_revision())
    (problem, *_) = missing(migrated_url)
    assert problem.text == "the schema cua is missing"
