"""Missing and altered parts are mended in place: who waits for it, and what an end half way leaves.

Whoever rebuilds owns the tables and is no superuser.
"""

import threading

import pytest

from consumers.database.connection import connected
from consumers.database.migrate import schema_differences
from consumers.database.readiness import make_ready
from consumers.database.shape import find_problems
from consumers.errors import CuaProjectError, MismatchError
from consumers.rebuild.rebuild import RebuildReport, rebuild
from consumers.rebuild.verify import verify
from consumers.status import read_status
from tests.support.eventually import eventually
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import execute, one
from tests.support.rebuilding import run

pytestmark = pytest.mark.services

EDIT = "UPDATE cua.turn SET reward = 7"
WATCH = """
CREATE TABLE cua.seen (mode text, lock_timeout text);
CREATE FUNCTION cua.see() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO cua.seen
    SELECT mode, current_setting(''lock_timeout'') FROM pg_locks WHERE pid = pg_backend_pid()
    AND relation = ''cua.turn''::regclass; RETURN NULL; END';
CREATE TRIGGER see AFTER UPDATE ON cua.turn FOR EACH STATEMENT EXECUTE FUNCTION cua.see();
"""
"""Notes the locks on cua.turn while a rebuild corrects it."""
LOST = {
    "primary key": "ALTER TABLE cua.turn DROP CONSTRAINT pk_turn",
    "unique key": "ALTER TABLE cua.turn DROP CONSTRAINT uq_turn_rollout_id_turn",
    "NOT NULL": "ALTER TABLE cua.turn ALTER COLUMN policy_version DROP NOT NULL",
    "column": "ALTER TABLE cua.turn DROP COLUMN num_tokens",
    "NULL": (
        "UPDATE cua.turn SET stop_reason = 'x'; ALTER TABLE cua.turn ALTER COLUMN stop_reason SET"
        " NOT NULL"
    ),
    "a user's column": "ALTER TABLE cua.turn ADD COLUMN mine text NOT NULL DEFAULT ''; ALTER TABLE"
    " cua.turn ALTER COLUMN mine DROP DEFAULT",
    "another key of the name": (
        "ALTER TABLE cua.turn DROP CONSTRAINT uq_turn_rollout_id_turn, ADD CONSTRAINT"
        " uq_turn_rollout_id_turn UNIQUE (id, turn)"
    ),
    "another primary key": (
        "ALTER TABLE cua.turn DROP CONSTRAINT pk_turn, ADD CONSTRAINT mine PRIMARY KEY (rollout_id,"
        " turn)"
    ),
    "a renamed key": "ALTER TABLE cua.turn RENAME CONSTRAINT pk_turn TO turn_pkey",
    "an index instead of a key": (
        "ALTER TABLE cua.turn DROP CONSTRAINT pk_turn; CREATE UNIQUE INDEX pk_turn ON cua.turn (id)"
    ),
}


@pytest.fixture
def migrated_url(owners_url: str) -> str:
    """The database of an owner without other privileges."""
    return owners_url


def problems(url: str) -> list[str]:
    with connected(url, "test") as connection, connection, connection.cursor() as cursor:
        return [problem.text for problem in find_problems(cursor)]


@pytest.mark.parametrize("what", LOST)
def test_readers_do_not_wait_while_rows_are_compared_and_corrected(
    migrated_url: str, log: MemoryLog, what: str
) -> None:
    execute(migrated_url, EDIT)
    execute(migrated_url, LOST[what])
    execute(migrated_url, WATCH)
    assert len(found := problems(migrated_url)) == 1

    report = run(log, migrated_url)

    assert (report.missing, report.different) == (found, ["turn"])
    modes = one(migrated_url, "SELECT array_agg(DISTINCT mode) FROM cua.seen")
    assert isinstance(modes, list)
    assert "RowExclusiveLock" in modes
    assert "AccessExclusiveLock" not in modes
    assert one(migrated_url, "SELECT DISTINCT lock_timeout FROM cua.seen") == "10s"
    assert problems(migrated_url) == []
    assert schema_differences(migrated_url) == []
    assert verify(MemoryReader(log), migrated_url).equal


def test_a_reader_in_the_way_of_a_repair_is_named_and_waited_for(
    migrated_url: str, log: MemoryLog, caplog: pytest.LogCaptureFixture
) -> None:
    execute(migrated_url, LOST["a renamed key"])
    reports: list[RebuildReport] = []
    with connected(migrated_url, "of a reader") as reader, reader.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM cua.turn")
        thread = threading.Thread(target=lambda: reports.append(run(log, migrated_url)))
        thread.start()
        eventually(lambda: f"waiting for process {reader.info.backend_pid} (" in caplog.text)
        reader.rollback()
        thread.join(60)

    assert [report.equal for report in reports] == [False]
    assert problems(migrated_url) == []


REFUSING = (
    "CREATE FUNCTION cua.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION"
    " ''not now''; END'; CREATE TRIGGER refuse BEFORE UPDATE ON cua.turn FOR EACH ROW EXECUTE"
    " FUNCTION cua.refuse()"
)


def test_a_rebuild_that_ends_after_it_has_added_a_column_leaves_tables_that_ask_for_a_rebuild(
    migrated_url: str, log: MemoryLog
) -> None:
    """Its rows lack their values, which no catalogue shows."""
    execute(migrated_url, LOST["column"])
    execute(migrated_url, REFUSING)

    with pytest.raises(CuaProjectError, match=r"not now .*no row was changed"):
        rebuild(MemoryReader(log), migrated_url)

    assert problems(migrated_url) == []
    assert one(migrated_url, "SELECT count(num_tokens) FROM cua.turn") == 0
    assert read_status(MemoryReader(log), migrated_url).needs_rebuild
    with pytest.raises(MismatchError, match="run `cua-project rebuild`"):
        verify(MemoryReader(log), migrated_url)
    execute(migrated_url, "DROP TRIGGER refuse ON cua.turn")
    assert run(log, migrated_url).different == ["turn"]
    assert not read_status(MemoryReader(log), migrated_url).needs_rebuild
    assert verify(MemoryReader(log), migrated_url).equal


def test_a_renamed_key_stops_no_command(migrated_url: str) -> None:
    execute(migrated_url, LOST["a renamed key"])

    make_ready(migrated_url, embedded=False)

    assert problems(migrated_url) == [
        "the primary key pk_turn of cua.turn should have that name and is named turn_pkey"
    ]
