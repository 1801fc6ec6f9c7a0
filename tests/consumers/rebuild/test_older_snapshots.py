"""No transaction sees the tables that a rebuild brings in without the rows that it may see.

A transaction whose snapshot is older than those rows delays the swap, whatever it has read so far.
"""

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg2
import pytest

from consumers.database.connection import Connection, connect, connected
from consumers.database.location import libpq_url
from consumers.errors import LimitExceededError
from consumers.rebuild.older_snapshots import OlderSnapshots
from consumers.rebuild.rebuild import rebuild, roll_back
from tests.reference_fold.histories import LoggedEvent
from tests.support.logs import memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import execute, one
from tests.support.rebuilding import project

pytestmark = pytest.mark.services
TURNS = "SELECT count(*) FROM cua.turn"


@pytest.fixture
def user(migrated_url: str) -> Iterator[Connection]:
    """Somebody's session."""
    connection = connect(migrated_url, "nightly dump")
    yield connection
    connection.close()


def value(session: Connection, query: str) -> object:
    with session.cursor() as cursor:
        cursor.execute(query)
        row = cursor.fetchone()
        return None if row is None else row[0]


def repeatable_read(session: Connection) -> None:
    session.set_session(isolation_level="REPEATABLE READ", readonly=True)
    value(session, "SELECT 1")


def serializable(session: Connection) -> None:
    session.set_session(isolation_level="SERIALIZABLE")
    value(session, "SELECT count(*) FROM pg_tables")


def open_cursor(session: Connection) -> None:
    """Whose function is called again and again, with the snapshot of the cursor's beginning."""
    with session.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION public.turns() RETURNS bigint STABLE LANGUAGE plpgsql AS 'BEGIN"
            " RETURN (SELECT count(*) FROM cua.turn); END'"
        )
    session.commit()
    with session.cursor() as cursor:
        cursor.execute(
            "DECLARE mine CURSOR FOR SELECT CASE WHEN n > 1 THEN public.turns() END FROM"
            " generate_series(1, 2) AS n; FETCH mine"
        )


SNAPSHOTS: dict[Callable[[Connection], None], str] = {
    repeatable_read: TURNS,
    serializable: TURNS,
    open_cursor: "FETCH mine",
}


@pytest.mark.parametrize("begin", SNAPSHOTS)
def test_a_snapshot_from_before_the_new_rows_delays_the_swap_and_is_named(
    migrated_url: str,
    log: MemoryLog,
    user: Connection,
    begin: Callable[[Connection], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    turns = one(migrated_url, TURNS)
    begin(user)

    with pytest.raises(LimitExceededError) as error:
        rebuild(MemoryReader(log), migrated_url, swap_timeout_s=0.5)

    named = (
        rf"process {user.info.backend_pid} \(cua, cua-project nightly dump, idle in transaction for"
        r" \d+ s\) has a snapshot"
    )
    assert re.search(named, str(error.value))
    assert re.search(named, caplog.text)
    assert "`cua-project rebuild` continues with it" in str(error.value)
    assert value(user, SNAPSHOTS[begin]) == turns
    user.rollback()
    assert rebuild(MemoryReader(log), migrated_url, swap_timeout_s=60).swapped


def test_a_snapshot_taken_while_the_log_grows_sees_what_was_live_when_it_was_taken(
    migrated_url: str, log: MemoryLog, user: Connection, events: list[LoggedEvent]
) -> None:
    """The replay is finished, and behind the live tables until the swap."""
    repeatable_read(user)
    with pytest.raises(LimitExceededError):
        rebuild(MemoryReader(log), migrated_url, swap_timeout_s=0.3)
    user.rollback()
    memory_log(events[-20:], log)
    project(log, migrated_url)
    steps = one(migrated_url, "SELECT sum(sequence) FROM cua.stream_position")
    repeatable_read(user)

    with pytest.raises(LimitExceededError, match="has a snapshot"):
        rebuild(MemoryReader(log), migrated_url, swap_timeout_s=0.5)

    assert value(user, "SELECT sum(sequence) FROM cua.stream_position") == steps


def test_a_transaction_without_a_snapshot_and_one_that_begins_later_delay_nothing(
    migrated_url: str, log: MemoryLog, user: Connection
) -> None:
    value(user, "SELECT 1")
    turns = one(migrated_url, TURNS)
    assert user.info.transaction_status

    assert rebuild(MemoryReader(log), migrated_url, swap_timeout_s=60).swapped

    assert value(user, TURNS) == turns
    user.rollback()
    repeatable_read(user)
    # What the last swap replaced was filled before this snapshot.
    roll_back(migrated_url, swap_timeout_s=60)
    assert value(user, TURNS) == turns


def test_snapshots_that_only_look_old_because_somebody_writes_for_long_delay_nothing(
    migrated_url: str, log: MemoryLog, user: Connection
) -> None:
    """Each has the xmin of the oldest writer, also those that see all the new rows."""
    execute(migrated_url, "CREATE TABLE public.theirs (id int)")
    with user.cursor() as cursor:
        cursor.execute("INSERT INTO public.theirs VALUES (1)")

    with busy(migrated_url, sessions=3):
        assert rebuild(MemoryReader(log), migrated_url, swap_timeout_s=60).swapped


@contextmanager
def busy(url: str, sessions: int) -> Iterator[None]:
    """Short statements without a pause, so that there is a snapshot at every moment."""
    stop = threading.Event()

    def query() -> None:
        connection = psycopg2.connect(libpq_url(url))
        connection.autocommit = True
        while not stop.is_set():
            value(connection, "SELECT pg_sleep(0.03)")
        connection.close()

    threads = [threading.Thread(target=query) for _ in range(sessions)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(20)


def test_a_prepared_transaction_is_named_with_what_ends_it(
    migrated_url: str, log: MemoryLog, user: Connection
) -> None:
    value(user, TURNS)
    with user.cursor() as cursor:
        cursor.execute("CREATE TABLE public.theirs (id int); PREPARE TRANSACTION 'it''s mine'")
    user.rollback()
    try:
        with pytest.raises(LimitExceededError) as error:
            rebuild(MemoryReader(log), migrated_url, swap_timeout_s=0.5)
        assert re.search(
            r"the prepared transaction 'it''s mine' \(cua, for \d+ s\)", str(error.value)
        )
        assert "ROLLBACK PREPARED 'it''s mine'" in str(error.value)
    finally:
        user.autocommit = True
        with user.cursor() as cursor:
            cursor.execute("ROLLBACK PREPARED 'it''s mine'")
    assert rebuild(MemoryReader(log), migrated_url).swapped


OTHERS = {
    "a foreign key": "CREATE TABLE public.theirs (id uuid REFERENCES cua.turn)",
    "a view": "CREATE VIEW public.theirs AS SELECT id FROM cua.turn WHERE false",
    "a policy": "CREATE TABLE public.theirs (id uuid); CREATE POLICY mine ON public.theirs USING"
    " (id IN (SELECT id FROM cua.turn))",
    "a rule": "CREATE TABLE public.theirs (id uuid); CREATE RULE mine AS ON INSERT TO public.theirs"
    " DO ALSO DELETE FROM cua.turn WHERE id = new.id",
}


@pytest.mark.parametrize("what", OTHERS)
def test_who_reads_a_users_table_or_view_that_the_swap_locks_too_is_named(
    migrated_url: str, log: MemoryLog, user: Connection, what: str
) -> None:
    execute(migrated_url, OTHERS[what])
    value(user, "SELECT 'public.theirs'::regclass")
    with user.cursor() as cursor:
        cursor.execute("LOCK TABLE ONLY public.theirs IN ACCESS SHARE MODE")

    with pytest.raises(LimitExceededError) as error:
        rebuild(MemoryReader(log), migrated_url, swap_timeout_s=0.5)

    assert f"process {user.info.backend_pid} (cua, cua-project nightly dump" in str(error.value)


def test_who_takes_over_an_older_snapshot_is_one_of_them_and_a_later_reader_is_not(
    migrated_url: str, user: Connection
) -> None:
    """As parallel dumps do."""
    older = OlderSnapshots()
    with (
        connected(migrated_url, "swap") as swap,
        connected(migrated_url, "worker of the dump") as worker,
        connected(migrated_url, "later") as later,
    ):
        swap.autocommit = True
        with swap.cursor() as cursor:
            repeatable_read(user)
            exported = value(user, "SELECT pg_export_snapshot()")
            # From here on a snapshot is a newer one.
            cursor.execute("CREATE TABLE public.filled ()")
            older.note(cursor)
            pids = [user.info.backend_pid]
            assert [session.pid for session in older.remaining(cursor)] == pids
            worker.set_session(isolation_level="REPEATABLE READ")
            value(worker, f"SET TRANSACTION SNAPSHOT '{exported}'; SELECT 1")
            repeatable_read(later)
            user.rollback()
            pids = [worker.info.backend_pid]
            assert [session.pid for session in older.remaining(cursor)] == pids
            worker.rollback()
            assert older.remaining(cursor) == []
            # Rows that a catching up adds make nobody old.
            cursor.execute("DROP TABLE public.filled")
            older.note(cursor)
            assert older.remaining(cursor) == []


@contextmanager
def repeated(*works: Callable[[], object]) -> Iterator[None]:
    """Each again and again, on a thread of its own."""
    over = threading.Event()

    def repeat(work: Callable[[], object]) -> None:
        while not over.is_set():
            work()

    with ThreadPoolExecutor(len(works)) as threads:
        done = [threads.submit(repeat, work) for work in works]
        try:
            yield
        finally:
            over.set()
    for one_work in done:
        one_work.result()


def test_statements_that_overlap_for_ever_delay_the_swap_for_one_of_them_while_the_log_grows(
    migrated_url: str, log: MemoryLog, events: list[LoggedEvent]
) -> None:
    def grow() -> None:
        """A duplicate: it moves the position."""
        memory_log(events[:1], log)
        project(log, migrated_url)

    def report() -> None:
        with connected(migrated_url, "report") as session:
            value(session, "SELECT pg_sleep(0.7 + random()) FROM pg_tables LIMIT 1")

    with repeated(grow, report, report, report):
        assert rebuild(MemoryReader(log), migrated_url, swap_timeout_s=20).swapped


def test_a_role_that_may_see_nothing_of_others_waits_for_their_snapshots_too(
    migrated_url: str, user: Connection
) -> None:
    role = "weak_" + migrated_url.rsplit("_", 1)[1]
    execute(migrated_url, f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA cua TO {role}")
    older = OlderSnapshots()
    with connected(migrated_url, "swap") as swap:
        swap.autocommit = True
        with swap.cursor() as cursor:
            repeatable_read(user)
            cursor.execute(f"CREATE TABLE public.filled (); SET ROLE {role}")
            older.note(cursor)
            (found,) = older.remaining(cursor)
            cursor.execute(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")
    assert (found.pid, found.role, found.is_hidden) == (user.info.backend_pid, "cua", True)
    assert "cua-project nightly dump, in a state hidden from this role" in str(found)


def test_whoever_vacuums_a_table_for_long_delays_nothing(
    migrated_url: str, log: MemoryLog, user: Connection
) -> None:
    execute(
        migrated_url,
        "CREATE TABLE public.theirs WITH (autovacuum_enabled = false) AS SELECT generate_series(1,"
        " 200000)",
    )
    user.autocommit = True
    with user.cursor() as cursor:
        cursor.execute("SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1")

    def vacuum() -> None:
        with pytest.raises(psycopg2.errors.QueryCanceled), user.cursor() as cursor:
            cursor.execute("VACUUM public.theirs")

    thread = threading.Thread(target=vacuum)
    thread.start()
    try:
        assert rebuild(MemoryReader(log), migrated_url, swap_timeout_s=60).swapped
        state = f"SELECT state FROM pg_stat_activity WHERE pid = {user.info.backend_pid}"
        assert one(migrated_url, state) == "active"
    finally:
        user.cancel()
        thread.join(20)
