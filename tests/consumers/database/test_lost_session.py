"""A session that the server ends is told as that, with what to do; it is no bug of ours."""

import gc
import os

import psycopg2
import pytest
import sqlalchemy as sa

from consumers.database.connection import connected
from consumers.database.location import database_engine
from consumers.database.lost_session import lost_session
from consumers.database.migrate import migrate
from consumers.database.revision import look
from consumers.diagnostics import configure_logging
from consumers.errors import UnreachableError
from tests.support.forked_command import run_command
from tests.support.postgres import execute, one

pytestmark = pytest.mark.services
END_OUR_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND"
    " pid <> pg_backend_pid()"
)


def test_a_connection_that_is_collected_after_its_server_ended_it_prints_no_traceback(
    migrated_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging()
    engine = database_engine(migrated_url)
    connection = engine.connect()
    connection.execute(sa.text("SELECT 1"))
    execute(migrated_url, END_OUR_SESSIONS)
    del connection
    gc.collect()
    engine.dispose()
    assert capsys.readouterr() == ("", "")


def lost_by_use(url: str) -> BaseException:
    with connected(url, "test") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        execute(url, END_OUR_SESSIONS)
        with pytest.raises(psycopg2.OperationalError) as error:
            cursor.execute("SELECT 2")
    lost: BaseException = error.value
    return lost


def lost_by_use_after_use(url: str) -> BaseException:
    with connected(url, "test") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        execute(url, END_OUR_SESSIONS)

        def use_twice() -> None:
            try:
                cursor.execute("SELECT 2")
            finally:
                connection.rollback()

        with pytest.raises(psycopg2.InterfaceError) as error:
            use_twice()
    lost: BaseException = error.value
    return lost


def lost_in_sqlalchemy(url: str) -> BaseException:
    engine = database_engine(url)
    with engine.connect() as connection:
        connection.execute(sa.text("SELECT 1"))
        execute(url, END_OUR_SESSIONS)
        with pytest.raises(sa.exc.OperationalError) as error:
            connection.execute(sa.text("SELECT 2"))
    engine.dispose()
    lost: BaseException = error.value
    return lost


@pytest.mark.parametrize("lost", [lost_by_use, lost_by_use_after_use, lost_in_sqlalchemy])
def test_a_lost_session_is_known_however_it_is_noticed(database_url: str, lost: object) -> None:
    assert callable(lost)

    said = lost_session(lost(database_url)) or ""

    assert said.startswith("the database ended our session; uncommitted changes were rolled back: ")
    # One line of the driver's, about what happened first.
    assert "closed the connection unexpectedly" in said or "due to administrator command" in said
    assert "; run the same command again when the server answers" in said
    assert "\n" not in said


@pytest.mark.parametrize("statement", ["SELECT 1/0", "SELECT nothing", "SELECT pg_sleep(5)"])
def test_another_error_of_a_statement_is_none(database_url: str, statement: str) -> None:
    with connected(database_url, "test", {"statement_timeout": "500ms"}) as connection:
        with connection.cursor() as cursor, pytest.raises(psycopg2.Error) as error:
            cursor.execute(statement)
        assert lost_session(error.value) is None
    with pytest.raises(psycopg2.InterfaceError) as misuse:
        cursor.execute("SELECT 1")
    assert lost_session(misuse.value) is None
    assert lost_session(ValueError("server closed the connection unexpectedly")) is None


def test_a_migration_whose_session_is_ended_changes_nothing_and_says_so(database_url: str) -> None:
    # The server's answer to the first change of the next migration.
    execute(
        database_url,
        "CREATE FUNCTION public.die() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM"
        " pg_terminate_backend(pg_backend_pid()); END $$;"
        "CREATE EVENT TRIGGER die ON ddl_command_end WHEN tag IN ('CREATE TABLE')"
        " EXECUTE FUNCTION public.die()",
    )
    with pytest.raises(UnreachableError, match="uncommitted changes were rolled back"):
        migrate(database_url)
    done = run_command("consumers", "migrate", environ=os.environ | {"DATABASE_URL": database_url})
    assert (done.returncode, done.stderr.count("\n")) == (5, 1), done

    assert look(database_url).found == ()
    execute(database_url, "DROP EVENT TRIGGER die")
    assert migrate(database_url)[0] is None
    assert one(database_url, "SELECT count(*) FROM cua.session") == 0
