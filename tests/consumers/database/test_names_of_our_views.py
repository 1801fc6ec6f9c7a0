"""What a user gave the name of a view or function of ours is theirs: named, never replaced."""

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from psycopg2.extensions import cursor as Cursor  # noqa: N812

from consumers.database.connection import connect
from consumers.database.migrate import migrate, schema_differences
from consumers.errors import CuaProjectError
from consumers.rebuild.built import drop_built
from consumers.rebuild.rebuild import build_into, rebuild
from tests.reference_fold.histories import Shape
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryReader

pytestmark = pytest.mark.services


@pytest.fixture
def cursor(migrated_url: str) -> Iterator[Cursor]:
    with closing(connect(migrated_url, "test")) as connection:
        connection.autocommit = True
        with connection.cursor() as opened:
            yield opened


@pytest.mark.parametrize(
    "theirs",
    [
        "VIEW cua.rollout_summary AS SELECT run_name FROM cua.training",
        "VIEW cua.rollout_summary AS SELECT * FROM cua.rollout_summary_rows() WHERE reward > 0",
        "TABLE cua.rollout_summary (mine integer)",
        "MATERIALIZED VIEW cua.rollout_summary AS SELECT * FROM cua.rollout_summary_rows()",
    ],
)
def test_what_a_user_calls_like_a_view_of_ours_is_refused_by_name(
    migrated_url: str, cursor: Cursor, theirs: str
) -> None:
    cursor.execute(f"DROP VIEW cua.rollout_summary; CREATE {theirs}")
    kind = theirs.partition(" cua.")[0].lower()
    named = rf"{kind} cua\.rollout_summary is not ours.*drop or rename it"
    reader = MemoryReader(memory_log([]))
    for change in (migrate, lambda url: rebuild(reader, url)):
        with pytest.raises(CuaProjectError, match=named):
            change(migrated_url)
    assert f"not ours: {kind} cua.rollout_summary" in schema_differences(migrated_url)

    cursor.execute(f"ALTER {kind} cua.rollout_summary RENAME TO mine")
    migrate(migrated_url)
    assert schema_differences(migrated_url) == []
    rebuild(reader, migrated_url)
    cursor.execute("SELECT to_regclass('cua.mine') IS NOT NULL")
    assert cursor.fetchone() == (True,)


@pytest.mark.parametrize("of_ours", ["no view", "its view"])
def test_a_function_of_a_user_with_the_signature_of_ours_is_theirs(
    migrated_url: str, cursor: Cursor, of_ours: str
) -> None:
    name = "decode_int32(text)" if of_ours == "no view" else "turn_tokens_rows()"
    make = f"FUNCTION cua.{name} RETURNS integer LANGUAGE sql AS 'SELECT 17'"
    cursor.execute(f"DROP VIEW cua.turn_tokens; DROP FUNCTION cua.{name}; CREATE {make}")
    named = rf"function cua\.{re.escape(name)} is not ours.*drop or rename it"
    reader = MemoryReader(memory_log([]))
    for change in (migrate, lambda url: rebuild(reader, url)):
        with pytest.raises(CuaProjectError, match=named):
            change(migrated_url)
    with pytest.raises(CuaProjectError, match=r"rolled back: .*\n?.*function"):
        migrate(migrated_url, "base")

    cursor.execute(f"ALTER FUNCTION cua.{name} RENAME TO mine")
    migrate(migrated_url)
    assert schema_differences(migrated_url) == []
    arguments = "''" if of_ours == "no view" else ""
    cursor.execute(f"SELECT cua.mine({arguments})")
    assert cursor.fetchone() == (17,)


def test_neither_a_downgrade_nor_a_dropped_copy_takes_a_users_view_of_our_name(
    migrated_url: str, cursor: Cursor
) -> None:
    log = memory_log(logged_events("a", shape=Shape(steps=1, groups=1, group_size=2, turns=1)))
    build_into(MemoryReader(log), migrated_url, "only_a", run_name="a")
    for schema in ("cua", "only_a"):
        cursor.execute(
            f"DROP VIEW {schema}.turn_tokens; CREATE VIEW {schema}.turn_tokens AS SELECT 17 AS mine"
        )
    with pytest.raises(CuaProjectError, match="turn_tokens"):
        migrate(migrated_url, "base")
    with pytest.raises(CuaProjectError, match=r"view only_a\.turn_tokens"):
        drop_built(migrated_url, "only_a")
    cursor.execute("SELECT mine FROM cua.turn_tokens, only_a.turn_tokens AS copy (other)")
    assert cursor.fetchone() == (17,)


def test_users_functions_of_our_names_are_theirs(migrated_url: str, cursor: Cursor) -> None:
    cursor.execute(
        "CREATE FUNCTION cua.decode_int32(bytea) RETURNS integer LANGUAGE sql AS 'SELECT 1'"
    )
    assert schema_differences(migrated_url) == []
    with pytest.raises(CuaProjectError, match=r"decode_int32\(bytea\)"):
        migrate(migrated_url, "base")
    cursor.execute("SELECT cua.decode_int32(''::bytea)")
    assert cursor.fetchall() == [(1,)]


@pytest.mark.parametrize(
    "theirs",
    [
        "DROP VIEW cua.turn_tokens; CREATE TABLE cua.turn_tokens (mine int)",
        "DROP VIEW cua.turn_tokens; CREATE MATERIALIZED VIEW cua.turn_tokens AS SELECT 1 AS mine",
        "DROP FUNCTION cua.decode_int32(text); CREATE FUNCTION cua.decode_int32(mine text) RETURNS"
        " integer[] LANGUAGE sql AS 'SELECT NULL::integer[]'",
    ],
)
def test_what_has_the_name_of_one_of_our_views_is_named_and_stays(
    migrated_url: str, cursor: Cursor, theirs: str
) -> None:
    cursor.execute(theirs)
    with pytest.raises(CuaProjectError, match=r"(turn_tokens|decode_int32).*drop or rename"):
        migrate(migrated_url)
