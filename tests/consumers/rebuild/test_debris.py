"""What a killed rebuild left is cleared away by the next; what others made never is."""

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from consumers.database.connection import connected
from consumers.errors import CuaProjectError, NotFoundError, SchemaBusyError, UsageError
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.built import STAGING, drop_built
from consumers.rebuild.preparation import schema_lock
from consumers.rebuild.rebuild import build_into, rebuild
from consumers.rebuild.side_schema import make_tables
from consumers.rebuild.until import parse_until
from tests.reference_fold.histories import LoggedEvent, Shape
from tests.support.eventually import eventually
from tests.support.forked_command import run_command
from tests.support.logs import logged_events, memory_log, write_local_log
from tests.support.memory_log import BEGAN, MemoryLog, MemoryReader
from tests.support.paths import ROOT
from tests.support.postgres import execute, one

pytestmark = pytest.mark.services
SMALL = Shape(steps=1, groups=1, group_size=2, turns=1)


@pytest.fixture(scope="module")
def events() -> list[LoggedEvent]:
    return logged_events("a", "b", shape=SMALL)


@pytest.fixture
def log(events: list[LoggedEvent]) -> MemoryLog:
    return memory_log(events)


def schemas(url: str) -> list[str]:
    with connected(url, "test") as connection, connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> ALL(%s) ORDER"
            " BY 1",
            (["cua", "cua_ops", "public", "information_schema"],),
        )
        return [row[0] for row in cursor.fetchall()]


def test_a_rebuild_clears_away_what_a_killed_one_left_and_refuses_a_schema_of_its_name(
    migrated_url: str, log: MemoryLog
) -> None:
    ProjectionLoop(MemoryReader(log), migrated_url).run_once()
    make_tables(migrated_url, STAGING)
    execute(
        migrated_url,
        f"CREATE VIEW public.mine AS SELECT id FROM {STAGING}.turn; CREATE SCHEMA cua_copy",
    )
    with pytest.raises(CuaProjectError, match=f"view mine depends on table {STAGING}.turn"):
        rebuild(MemoryReader(log), migrated_url)
    execute(migrated_url, "DROP VIEW public.mine")

    assert rebuild(MemoryReader(log), migrated_url).equal
    assert schemas(migrated_url) == ["cua_copy"]

    execute(migrated_url, f"ALTER SCHEMA cua_copy RENAME TO {STAGING}")
    with pytest.raises(UsageError, match=f"the schema {STAGING} exists; .*: rename it") as foreign:
        rebuild(MemoryReader(log), migrated_url)
    assert "--into" not in str(foreign.value)
    assert schemas(migrated_url) == [STAGING]


def test_a_session_of_a_killed_rebuild_that_goes_on_counts_as_a_rebuild_that_is_running(
    migrated_url: str, log: MemoryLog
) -> None:
    """`cua-project up` then tries again. The server finishes a statement whose client is gone."""
    make_tables(migrated_url, STAGING)
    with connected(migrated_url, "left") as left, left.cursor() as cursor:
        cursor.execute(f"SELECT FROM {STAGING}.turn")
        with pytest.raises(SchemaBusyError, match=f"another session uses the schema {STAGING};"):
            rebuild(MemoryReader(log), migrated_url)

    rebuild(MemoryReader(log), migrated_url)
    assert schemas(migrated_url) == []


def test_the_lock_of_a_rebuild_is_free_as_soon_as_it_has_ended(migrated_url: str) -> None:
    """A session that was closed may keep it for a while."""
    for _ in range(30):
        with schema_lock(migrated_url):
            pass


def test_a_schema_that_was_built_is_removed_by_name_and_nothing_else_is(
    migrated_url: str, log: MemoryLog
) -> None:
    build_into(MemoryReader(log), migrated_url, "only_a", run_name="a")
    execute(migrated_url, "CREATE SCHEMA mine; CREATE TABLE mine.turn (id int)")

    with pytest.raises(UsageError, match="`cua-project rebuild --drop only_a` removes it"):
        build_into(MemoryReader(log), migrated_url, "only_a", run_name="a")
    with pytest.raises(UsageError, match="it was not built by `cua-project rebuild`"):
        build_into(MemoryReader(log), migrated_url, "mine")
    for name in ("mine", "public", "cua", "cua_ops", "pg_catalog", "information_schema"):
        with pytest.raises(UsageError, match=f"the schema {name} was not built by"):
            drop_built(migrated_url, name)
    with pytest.raises(NotFoundError, match=r"there is no schema 'only_b'\. Did you mean 'only_a'"):
        drop_built(migrated_url, "only_b")
    execute(migrated_url, "CREATE VIEW public.mine AS SELECT id FROM only_a.turn")
    with pytest.raises(CuaProjectError, match=r"view mine depends on table only_a\.turn"):
        drop_built(migrated_url, "only_a")
    execute(migrated_url, "DROP VIEW public.mine")
    drop_built(migrated_url, "only_a")

    assert schemas(migrated_url) == ["mine"]


def test_a_training_without_an_event_before_the_moment_is_not_found(
    migrated_url: str, log: MemoryLog
) -> None:
    first_of_b = next(
        index for index, record in enumerate(log.records) if b'"run_name":"b"' in record.value
    )
    until = parse_until(
        (BEGAN + timedelta(milliseconds=max(1, first_of_b))).isoformat(), MemoryReader(log)
    )

    if first_of_b > 0:
        with pytest.raises(NotFoundError, match="the training 'c' has no event before --until"):
            build_into(MemoryReader(log), migrated_url, "early", run_name="c", until=until)

    assert schemas(migrated_url) == []


@pytest.mark.parametrize(
    ("moment", "problem"),
    [
        (BEGAN - timedelta(days=1), "is before the beginning of the log, which is at 2026-03-01T0"),
        (BEGAN, "is before the beginning of the log"),
        (BEGAN + timedelta(days=1), "is beyond the end of the log, which is at 2026-03-01T00:00:0"),
    ],
)
def test_a_moment_outside_of_the_log_is_a_usage_error(
    log: MemoryLog, moment: object, problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        parse_until(str(moment), MemoryReader(log))


def test_an_empty_log_has_no_moment() -> None:
    with pytest.raises(UsageError, match="the log is empty"):
        parse_until("2026-03-01", MemoryReader(MemoryLog()))


@pytest.mark.parametrize("arguments", [["rebuild"], ["rebuild", "--run", "a", "--into", "mine"]])
def test_a_rebuild_that_is_killed_leaves_nothing_that_the_next_one_trips_over(
    migrated_url: str, tmp_path: Path, arguments: list[str]
) -> None:
    home = tmp_path / "home"
    # Long enough for the replay to be seen.
    shape = Shape(steps=2, groups=2, group_size=3, turns=4)
    log_file = home / "log" / "log.sqlite3"
    log_file.parent.mkdir(parents=True)
    write_local_log(log_file, logged_events("a", "b", shape=shape))
    environment = os.environ | {"CUA_HOME": str(home), "DATABASE_URL": migrated_url}
    command = [sys.executable, "-m", "consumers", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    deadline = time.monotonic() + 60
    while not schemas(migrated_url):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait(10)

    done = run_command("consumers", *arguments, environ=environment)

    assert done.returncode == 0, done.stderr
    assert schemas(migrated_url) == (["mine"] if "--run" in arguments else [])


SLOW = (
    "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM"
    " pg_sleep(0.2); RETURN NEW; END'; CREATE TRIGGER slow BEFORE UPDATE ON cua.turn FOR EACH ROW"
    " EXECUTE FUNCTION public.slow()"
)


def test_a_rebuild_that_is_killed_while_it_puts_rows_right_has_changed_nothing(
    migrated_url: str, events: list[LoggedEvent], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    log_file = home / "log" / "log.sqlite3"
    log_file.parent.mkdir(parents=True)
    write_local_log(log_file, events)
    environment = os.environ | {"CUA_HOME": str(home), "DATABASE_URL": migrated_url}
    assert run_command("consumers", "run", "--once", environ=environment).returncode == 0
    execute(migrated_url, "UPDATE cua.turn SET reward = 7; DELETE FROM cua.action")
    execute(migrated_url, SLOW)
    command = [sys.executable, "-m", "consumers", "rebuild"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    merging = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE"
        " 'UPDATE%turn%' AND wait_event = 'PgSleep'"
    )
    eventually(lambda: one(migrated_url, merging) == 1)
    process.send_signal(signal.SIGKILL)
    process.wait(10)

    eventually(lambda: one(migrated_url, merging) == 0)
    state = "SELECT min(reward), (SELECT count(*) FROM cua.action) FROM cua.turn"
    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        cursor.execute(state)
        assert cursor.fetchone() == (7.0, 0)
    execute(migrated_url, "DROP TRIGGER slow ON cua.turn")
    for name in ("rebuild", "verify"):
        done = run_command("consumers", name, environ=environment)
        assert done.returncode == 0, done.stderr
    assert schemas(migrated_url) == []
