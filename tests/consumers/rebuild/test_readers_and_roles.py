"""Readers neither wait for a rebuild nor delay it; who holds rows is waited for; no superuser."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
import pytest
from sqlalchemy import make_url

from consumers.database.connection import Cursor, connected
from consumers.database.location import libpq_url
from consumers.database.migrate import migrate, schema_differences
from consumers.errors import LimitExceededError
from consumers.rebuild.paused import while_paused
from consumers.rebuild.rebuild import RebuildReport, rebuild
from consumers.rebuild.verify import verify
from tests.reference_fold.histories import LoggedEvent
from tests.support.eventually import eventually
from tests.support.logs import memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import PostgresServer, execute, one
from tests.support.rebuilding import project, run

pytestmark = pytest.mark.services

EDIT = "UPDATE cua.turn SET reward = 7"
REPORT_LOCKS = (
    "-c deadlock_timeout=1ms -c log_lock_waits=on -c client_min_messages=log -c lc_messages=C"
)
"""The server tells the session itself of every lock that it waited for longer than 1 ms."""
WAITED = re.compile(r"still waiting for|acquired \w+ on .* after")


@contextmanager
def reading(url: str, waits: list[int]) -> Iterator[None]:
    """A reader in a thread; how often each read waited for a lock."""
    stop = threading.Event()

    def read() -> None:
        connection = psycopg2.connect(libpq_url(url), options=REPORT_LOCKS)
        connection.autocommit = True
        with connection.cursor() as cursor:
            while not stop.is_set():
                connection.notices.clear()
                cursor.execute("SELECT max(turn.reward) FROM cua.turn, cua.rollout_summary")
                waits.append(len(WAITED.findall("".join(connection.notices))))
        connection.close()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(20)


def test_no_read_waits_for_a_rebuild_that_changes_every_row(
    migrated_url: str, log: MemoryLog
) -> None:
    waits: list[int] = []
    with reading(migrated_url, waits):
        for _ in range(3):
            execute(migrated_url, EDIT)
            assert not run(log, migrated_url).equal
    assert len(waits) > 3
    assert sum(waits) == 0


def test_readers_in_long_transactions_keep_what_they_see_and_delay_nothing(
    migrated_url: str, log: MemoryLog, caplog: pytest.LogCaptureFixture
) -> None:
    execute(migrated_url, EDIT)
    seen = "SELECT min(reward) FROM cua.turn"
    with connected(migrated_url, "dump") as dump, connected(migrated_url, "report") as report:
        dump.set_session(isolation_level="REPEATABLE READ", readonly=True)
        with dump.cursor() as snapshot, report.cursor() as holder:
            snapshot.execute("SELECT 1")
            holder.execute("LOCK TABLE cua.turn, cua.rollout, cua.projection IN ACCESS SHARE MODE")

            assert run(log, migrated_url).different == ["turn"]

            snapshot.execute(seen)
            assert snapshot.fetchone() == (7.0,)
            holder.execute(seen)
            assert holder.fetchone() != (7.0,)
    assert "waiting for" not in caplog.text
    assert verify(MemoryReader(log), migrated_url).equal


def test_a_user_who_has_changed_a_row_and_not_committed_is_waited_for(
    migrated_url: str, log: MemoryLog
) -> None:
    execute(migrated_url, EDIT)
    reports: list[RebuildReport] = []
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'cua-project rebuild merge'"
        " AND datname = current_database() AND wait_event_type = 'Lock'"
    )
    with connected(migrated_url, "user") as user, user.cursor() as cursor:
        cursor.execute("UPDATE cua.turn SET reward = 8")
        thread = threading.Thread(target=lambda: reports.append(run(log, migrated_url)))
        thread.start()
        eventually(lambda: one(migrated_url, waiting) == 1)
        user.commit()
        thread.join(60)

    assert [report.different for report in reports] == [["turn"]]
    assert verify(MemoryReader(log), migrated_url).equal


def test_a_lock_that_nobody_gives_up_ends_the_waiting_with_exit_6(migrated_url: str) -> None:
    def lock(cursor: Cursor) -> None:
        cursor.execute("SET LOCAL lock_timeout = 1; LOCK TABLE cua.turn IN SHARE MODE")

    with connected(migrated_url, "user") as user, user.cursor() as cursor:
        cursor.execute("LOCK TABLE cua.turn IN ROW EXCLUSIVE MODE")
        with pytest.raises(LimitExceededError, match="kept the tables locked for 0 s") as late:
            while_paused(migrated_url, lock, locked_s=0)

    assert late.value.exit_code == 6
    while_paused(migrated_url, lock, locked_s=0)


def test_a_plain_role_that_owns_the_database_may_rebuild_beside_what_others_own(
    postgres: PostgresServer, events: list[LoggedEvent]
) -> None:
    name = postgres.create()
    role = f"plain_{name}"
    execute(
        postgres.url(name),
        f"CREATE ROLE {role} LOGIN PASSWORD 'x'; ALTER DATABASE {name} OWNER TO {role}",
    )
    url = (
        make_url(postgres.url(name))
        .set(username=role, password="x")  # noqa: S106  # a server of this test
        .render_as_string(hide_password=False)
    )
    try:
        migrate(url)
        log = memory_log(events)
        project(log, url)
        execute(
            postgres.url(name),
            "CREATE VIEW public.theirs AS SELECT id FROM cua.turn; CREATE TABLE public.notes (r"
            " uuid REFERENCES cua.rollout); CREATE PUBLICATION theirs FOR TABLE cua.turn",
        )
        execute(url, EDIT)
        assert run(log, url).different == ["turn"]
        assert verify(MemoryReader(log), url).equal
    finally:
        postgres.drop(name)
        execute(postgres.url(), f"DROP ROLE {role}")


def test_limits_of_a_role_end_neither_a_rebuild_nor_a_comparison(
    migrated_url: str, log: MemoryLog
) -> None:
    """They are meant for people's sessions, and are shorter here than the replay."""
    database = migrated_url.rpartition("/")[2]
    for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
        execute(migrated_url, f"ALTER DATABASE {database} SET {name} = '3ms'")

    assert verify(MemoryReader(log), migrated_url).equal
    rebuild(MemoryReader(log), migrated_url)
    migrate(migrated_url, "-1")
    migrate(migrated_url)
    assert schema_differences(migrated_url) == []
