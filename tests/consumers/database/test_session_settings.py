"""What a role or a database sets for people's sessions changes nothing of ours."""

import contextlib

import psycopg2
import pytest
import sqlalchemy as sa

from consumers.database.connection import NEWER_LIMITS, connected, schema_engine
from consumers.database.location import database_engine, libpq_url
from consumers.database.migrate import migrate, schema_differences
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.rebuild import rebuild
from consumers.rebuild.verify import verify
from tests.reference_fold.histories import history
from tests.support.logs import memory_log
from tests.support.memory_log import MemoryReader
from tests.support.postgres import execute, one

pytestmark = pytest.mark.services
HOSTILE = {
    "statement_timeout": "10s",
    "lock_timeout": "10s",
    "idle_session_timeout": "10s",
    "idle_in_transaction_session_timeout": "10s",
    "transaction_timeout": "10s",
    "default_transaction_isolation": "serializable",
    "search_path": "nowhere",
    "timezone": "Pacific/Kiritimati",
    "datestyle": "SQL, DMY",
    "intervalstyle": "sql_standard",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
    "array_nulls": "off",
    "quote_all_identifiers": "on",
    "standard_conforming_strings": "off",
    "client_encoding": "LATIN1",
}
OURS = {
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_session_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "transaction_timeout": "0",
    "default_transaction_isolation": "read committed",
    "search_path": "public",
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "array_nulls": "on",
    "quote_all_identifiers": "off",
    "standard_conforming_strings": "on",
    "client_encoding": "UTF8",
}


def known_settings(url: str) -> set[str]:
    """Those that this server has: transaction_timeout came with PostgreSQL 17."""
    with connected(url, "test") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT lower(name) FROM pg_settings")
        return {row[0] for row in cursor.fetchall()} & HOSTILE.keys()


def change(url: str, **settings: str) -> None:
    """Set them for the database, by a session that none of them disturbs."""
    with contextlib.closing(psycopg2.connect(libpq_url(url))) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            for name, value in settings.items():
                cursor.execute(f"ALTER DATABASE {connection.info.dbname} SET {name} = %s", (value,))


@pytest.fixture
def hostile_url(migrated_url: str) -> str:
    """Migrated; its database sets all that this server knows."""
    known = known_settings(migrated_url)
    assert len(known) >= len(HOSTILE) - 1
    change(migrated_url, **{name: HOSTILE[name] for name in known})
    return migrated_url


def shown(connection: "psycopg2.extensions.connection", names: set[str]) -> dict[str, str]:
    with connection.cursor() as cursor:
        found = {}
        for name in names:
            cursor.execute(f"SHOW {name}")
            found[name] = cursor.fetchone()[0]
    return found


def test_no_setting_of_the_database_counts_in_our_sessions(hostile_url: str) -> None:
    names = known_settings(hostile_url)
    ours = {name: OURS[name] for name in names}
    with connected(hostile_url, "test") as connection:
        assert shown(connection, names) == ours

    engine = schema_engine(hostile_url)
    with engine.connect() as schema:
        found = shown(schema.connection.driver_connection, names)
    assert found == ours | {"idle_in_transaction_session_timeout": "20s"}


def test_a_setting_that_the_caller_names_wins(hostile_url: str) -> None:
    with connected(hostile_url, "test", {"lock_timeout": "3s"}) as connection:
        assert shown(connection, {"lock_timeout"}) == {"lock_timeout": "3s"}


def test_numbers_and_times_are_read_exactly_by_programs(hostile_url: str) -> None:
    engine = database_engine(hostile_url)
    query = "SELECT 0.1::float8 + 0.2::float8, timestamptz '2026-03-01 12:00:00Z', interval '90 s'"
    with engine.connect() as connection:
        number, time, span = connection.execute(sa.text(query)).one()
    engine.dispose()

    assert number == 0.1 + 0.2
    assert time.isoformat() == "2026-03-01T12:00:00+00:00"
    assert span.total_seconds() == 90


def test_everything_works_in_such_a_database(database_url: str) -> None:
    """Three milliseconds end whatever of ours heeds them."""
    log = memory_log(history("a", 1))
    # These count until our first statement, which may take longer on a busy machine.
    known = known_settings(database_url) - set(NEWER_LIMITS)
    limits = {name: "3ms" for name in known if HOSTILE[name] == "10s"}
    change(database_url, **{name: HOSTILE[name] for name in known} | limits)

    migrate(database_url)
    events = ProjectionLoop(MemoryReader(log), database_url).run_once().events
    execute(database_url, "CREATE VIEW public.mine AS SELECT run_name FROM cua.training")
    rebuilt = rebuild(MemoryReader(log), database_url)

    assert (events, rebuilt.equal) == (len(history("a", 1)), True)
    assert verify(MemoryReader(log), database_url).equal
    assert schema_differences(database_url) == []
    assert one(database_url, "SELECT count(*) FROM public.mine") == 1
