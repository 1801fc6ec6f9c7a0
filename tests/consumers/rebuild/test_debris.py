"""What a killed rebuild left is cleared away; what others made never is, whatever its name."""

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from consumers.database.connection import connected
from consumers.database.migrate import migrate
from consumers.database.readiness import remove_debris
from consumers.errors import CuaProjectError, NotFoundError, UsageError
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.built import drop_built
from consumers.rebuild.preparation import schema_lock
from consumers.rebuild.rebuild import build_into, rebuild
from consumers.rebuild.side_schema import locked_schema
from consumers.rebuild.until import parse_until
from consumers.rebuild.verify import verify
from tests.reference_fold.histories import LoggedEvent, Shape
from tests.support.eventually import eventually
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


DEBRIS = (
    "CREATE SCHEMA cua_rebuild_0badcafe; CREATE TABLE cua_rebuild_0badcafe.turn (); COMMENT ON"
    """ SCHEMA cua_rebuild_0badcafe IS 'made by cua-project: {"finished": false, "for":"""
    """ "rebuild"}'"""
)


def _verify(url: str, log: MemoryLog) -> None:
    ProjectionLoop(MemoryReader(log), url).run_once()
    verify(MemoryReader(log), url)


def _rebuild(url: str, log: MemoryLog) -> None:
    rebuild(MemoryReader(log), url)


def _migrate(url: str, _log: MemoryLog) -> None:
    migrate(url)


def _run(url: str, _log: MemoryLog) -> None:
    remove_debris(url)


@pytest.mark.parametrize("command", [_verify, _rebuild, _migrate, _run])
def test_every_command_clears_debris_away_and_keeps_what_only_looks_like_it(
    migrated_url: str, log: MemoryLog, command: object
) -> None:
    execute(
        migrated_url,
        f"{DEBRIS}; CREATE SCHEMA cua_rebuild_notes; CREATE TABLE cua_rebuild_notes.turn (a int);"
        " CREATE SCHEMA cua_verify_12345678; CREATE TABLE cua_verify_12345678.mine (a int); CREATE"
        " SCHEMA cua_copy",
    )

    assert callable(command)
    command(migrated_url, log)

    assert schemas(migrated_url) == [
        "cua_copy",
        "cua_rebuild_notes",
        "cua_verify_12345678",
    ]


def test_the_locks_of_a_rebuild_are_free_as_soon_as_it_has_ended(migrated_url: str) -> None:
    """A session that was closed may keep them for a while."""
    for _ in range(30):
        with schema_lock(migrated_url), locked_schema(migrated_url, "copy"):
            pass


def test_debris_that_somebody_uses_stays_and_is_named(
    migrated_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    execute(
        migrated_url,
        f"{DEBRIS}; ALTER TABLE cua_rebuild_0badcafe.turn ADD id int; CREATE VIEW public.mine AS"
        " SELECT id FROM cua_rebuild_0badcafe.turn",
    )

    remove_debris(migrated_url)

    assert schemas(migrated_url) == ["cua_rebuild_0badcafe"]
    assert "view mine (reads table cua_rebuild_0badcafe.turn)" in caplog.text


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
    with pytest.raises(CuaProjectError, match=r"view mine \(reads table only_a\.turn\)"):
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
    shape = Shape(steps=3, groups=4, group_size=4, turns=6)
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

    done = subprocess.run(
        command, cwd=ROOT, env=environment, timeout=120, check=False, capture_output=True, text=True
    )

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
    project = [sys.executable, "-m", "consumers", "run", "--once"]
    subprocess.run(project, cwd=ROOT, env=environment, timeout=120, check=True)
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
    subprocess.run(command, cwd=ROOT, env=environment, timeout=120, check=True)
    verifying = [sys.executable, "-m", "consumers", "verify"]
    subprocess.run(verifying, cwd=ROOT, env=environment, timeout=120, check=True)
    assert schemas(migrated_url) == []
