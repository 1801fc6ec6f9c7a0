"""Missing parts are made again in place: who waits for it, and what an end half way leaves.

Whoever rebuilds owns the tables and is no superuser.
"""

import threading

import pytest

from consumers.database.connection import connected
from consumers.database.migrate import schema_differences
from consumers.database.readiness import make_ready
from consumers.database.shape import find_problems
from consumers.errors import CuaProjectError
from consumers.rebuild.rebuild import RebuildReport, rebuild
from consumers.rebuild.verify import verify
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
NO_KEY = "ALTER TABLE cua.turn DROP CONSTRAINT pk_turn"


@pytest.fixture
def migrated_url(owners_url: str) -> str:
    """The database of an owner without other privileges."""
    return owners_url


def problems(url: str) -> list[str]:
    with connected(url, "test") as connection, connection, connection.cursor() as cursor:
        return [problem.text for problem in find_problems(cursor)]


@pytest.mark.parametrize(
    ("statement", "is_locked"), [("DROP INDEX cua.ix_rollout_task_id", False), (NO_KEY, True)]
)
def test_readers_wait_for_the_repair_of_a_key_and_not_for_that_of_an_index(
    migrated_url: str, log: MemoryLog, statement: str, is_locked: bool
) -> None:
    execute(migrated_url, EDIT)
    execute(migrated_url, statement)
    execute(migrated_url, WATCH)
    assert len(found := problems(migrated_url)) == 1

    report = run(log, migrated_url)

    assert (report.missing, "turn" in report.different) == (found, True)
    modes = one(migrated_url, "SELECT array_agg(DISTINCT mode) FROM cua.seen")
    assert isinstance(modes, list)
    assert "RowExclusiveLock" in modes
    assert ("AccessExclusiveLock" in modes) == is_locked
    assert one(migrated_url, "SELECT DISTINCT lock_timeout FROM cua.seen") == "10s"
    assert problems(migrated_url) == []
    assert schema_differences(migrated_url) == []
    assert verify(MemoryReader(log), migrated_url).equal


def test_a_reader_in_the_way_of_a_repair_is_named_and_waited_for(
    migrated_url: str, log: MemoryLog, caplog: pytest.LogCaptureFixture
) -> None:
    execute(migrated_url, NO_KEY)
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


def test_a_rebuild_that_is_refused_leaves_a_missing_column_missing(
    migrated_url: str, log: MemoryLog
) -> None:
    """A column without its values would be told by nothing from one that has them."""
    execute(migrated_url, "ALTER TABLE cua.turn DROP COLUMN num_tokens")
    execute(migrated_url, REFUSING)

    with pytest.raises(CuaProjectError, match=r"not now .*no row was changed"):
        rebuild(MemoryReader(log), migrated_url)

    assert problems(migrated_url) == ["the column cua.turn.num_tokens is missing"]
    execute(migrated_url, "DROP TRIGGER refuse ON cua.turn")
    assert run(log, migrated_url).different == ["turn"]
    assert verify(MemoryReader(log), migrated_url).equal


def test_a_key_does_its_work_under_any_name(migrated_url: str, log: MemoryLog) -> None:
    execute(migrated_url, "ALTER TABLE cua.turn RENAME CONSTRAINT pk_turn TO turn_pkey")

    make_ready(migrated_url, embedded=False)

    assert problems(migrated_url) == []
    assert run(log, migrated_url).equal


IN_THE_WAY = {
    r'the table cua\.turn is missing, .* relation "turn" already exists': (
        "ALTER TABLE cua.turn RENAME TO turn_old; CREATE VIEW cua.turn AS TABLE cua.turn_old"
    ),
    r"the primary key pk_turn of cua\.turn is missing, .* multiple primary keys": (
        f"{NO_KEY}, ADD CONSTRAINT mine PRIMARY KEY (rollout_id, turn)"
    ),
    r"the primary key pk_turn of cua\.turn is missing, .* is duplicated": (
        f"{NO_KEY}, DROP CONSTRAINT uq_turn_rollout_id_turn; INSERT INTO cua.turn SELECT * FROM"
        " cua.turn"
    ),
    r"the index ix_rollout_task_id of cua\.rollout is missing, .* already exists": (
        "DROP INDEX cua.ix_rollout_task_id; CREATE INDEX ix_rollout_task_id ON cua.rollout (reward)"
    ),
}


@pytest.mark.parametrize("problem", IN_THE_WAY)
def test_what_is_in_the_way_of_a_repair_is_named_and_no_row_is_changed(
    migrated_url: str, log: MemoryLog, problem: str
) -> None:
    execute(migrated_url, IN_THE_WAY[problem])
    before = one(migrated_url, "SELECT count(*) FROM cua.turn")

    with pytest.raises(CuaProjectError, match=problem) as refused:
        rebuild(MemoryReader(log), migrated_url)

    assert "no row was changed. Drop or rename what is in the way" in str(refused.value)
    assert one(migrated_url, "SELECT count(*) FROM cua.turn") == before
