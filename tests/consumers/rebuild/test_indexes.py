"""What users did to indexes, ours and their own, survives; an invalid one is refused first."""

import psycopg2
import pytest

from consumers.database.connection import connected
from consumers.database.location import libpq_url
from consumers.errors import CuaProjectError
from consumers.rebuild.rebuild import rebuild, roll_back
from tests.reference_fold.histories import Shape
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import execute, one
from tests.support.rebuilding import project, run

pytestmark = pytest.mark.services


@pytest.fixture
def log(migrated_url: str) -> MemoryLog:
    log = memory_log(logged_events("a", shape=Shape(steps=1, groups=1, group_size=2, turns=1)))
    project(log, migrated_url)
    return log


SETTINGS = (
    "SELECT jsonb_object_agg(pg_class.relname, jsonb_build_array(reloptions, spcname, (SELECT"
    " array_agg(attstattarget ORDER BY attnum) FROM pg_attribute WHERE attrelid ="
    " indexrelid))) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid LEFT JOIN"
    " pg_tablespace ON pg_tablespace.oid = reltablespace WHERE indrelid = 'cua.turn'::regclass"
)


def test_options_tablespace_and_statistics_of_indexes_survive_rebuilds_and_a_rollback(
    migrated_url: str, log: MemoryLog
) -> None:
    space = "space_" + migrated_url.rsplit("_", 1)[1]
    with connected(migrated_url, "test") as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("SET allow_in_place_tablespaces = on")
            cursor.execute(f"CREATE TABLESPACE {space} LOCATION ''")
    try:
        execute(
            migrated_url,
            f"ALTER INDEX cua.pk_turn SET (fillfactor = 61); ALTER INDEX cua.pk_turn SET TABLESPACE"
            f" {space}; CREATE INDEX mine ON cua.turn (reward, lower(stop_reason)) WITH (fillfactor"
            f" = 62) TABLESPACE {space}; ALTER INDEX cua.mine ALTER COLUMN 2 SET STATISTICS 77;"
            " ALTER TABLE cua.turn ADD CONSTRAINT mine_too UNIQUE (id, turn) WITH (fillfactor = 63)"
            f" USING INDEX TABLESPACE {space}",
        )
        before = one(migrated_url, SETTINGS)
        assert isinstance(before, dict)
        assert before["mine"] == [["fillfactor=62"], space, [None, 77]]

        run(log, migrated_url)
        assert one(migrated_url, SETTINGS) == before
        execute(migrated_url, "ALTER INDEX cua.pk_turn RESET (fillfactor)")
        execute(migrated_url, "ALTER INDEX cua.mine ALTER COLUMN 2 SET STATISTICS -1")
        roll_back(migrated_url)

        assert one(migrated_url, SETTINGS) == before | {
            "pk_turn": [None, space, [None]],
            "mine": [["fillfactor=62"], space, [None, None]],
        }
    finally:
        execute(migrated_url, "DROP SCHEMA cua CASCADE; DROP SCHEMA IF EXISTS cua_previous CASCADE")
        with connected(migrated_url, "test") as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(f"DROP TABLESPACE {space}")


def test_an_invalid_index_is_refused_before_the_replay(migrated_url: str, log: MemoryLog) -> None:
    session = psycopg2.connect(libpq_url(migrated_url))
    session.autocommit = True
    with session.cursor() as cursor, pytest.raises(psycopg2.errors.UniqueViolation):
        cursor.execute("CREATE UNIQUE INDEX CONCURRENTLY mine ON cua.turn (turn)")
    session.close()

    with pytest.raises(CuaProjectError, match=r"index cua\.mine: it is invalid"):
        rebuild(MemoryReader(log), migrated_url)

    assert one(migrated_url, "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^cua_re'") == 0
    execute(migrated_url, "DROP INDEX cua.mine")
    run(log, migrated_url)
