"""Messages name the session that holds a lock, and what a role may not end is said."""

from collections.abc import Iterator

import psycopg2
import pytest

from consumers.database.blockers import advisory_lock_holders, end_session, lock_holders
from consumers.database.connection import Connection, connect, connected
from consumers.database.migrate import SCHEMA_LOCK

pytestmark = pytest.mark.services


@pytest.fixture
def user(migrated_url: str) -> Iterator[Connection]:
    """A session with a transaction that has locked a table and read another."""
    with connected(migrated_url, "of a user") as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLE cua.rollout IN SHARE MODE; SELECT count(*) FROM cua.turn")
        yield connection


def test_who_holds_locks_on_a_schema_is_named(migrated_url: str, user: Connection) -> None:
    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        (found,) = lock_holders(cursor, "cua")
        assert lock_holders(cursor, "cua_ops") == []
        assert lock_holders(cursor, "no_such_schema") == []
    assert found.pid == user.info.backend_pid
    assert found.locked == ["cua.rollout"]
    assert str(found).startswith(f"process {found.pid} (")
    assert "cua-project of a user, idle in transaction for " in str(found)


def test_who_holds_the_schema_lock_is_named(migrated_url: str) -> None:
    with (
        connected(migrated_url, "rebuild lock") as holder,
        connected(migrated_url, "test") as connection,
    ):
        with holder.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", (SCHEMA_LOCK,))
        with connection.cursor() as cursor:
            (found,) = advisory_lock_holders(cursor, SCHEMA_LOCK)
            assert advisory_lock_holders(cursor, SCHEMA_LOCK + 1) == []
        assert (found.pid, found.application) == (
            holder.info.backend_pid,
            "cua-project rebuild lock",
        )


def test_a_session_that_was_ended_is_of_no_more_use(migrated_url: str) -> None:
    member = connect(migrated_url, "run")
    with connected(migrated_url, "test") as connection:
        assert end_session(connection, member.info.backend_pid) is None
    with member.cursor() as cursor, pytest.raises(psycopg2.OperationalError):
        cursor.execute("SELECT 1")
    member.close()


def test_a_session_that_a_role_may_not_end_is_said(migrated_url: str, user: Connection) -> None:
    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE ROLE nobody_special; SET ROLE nobody_special")

        problem = end_session(connection, user.info.backend_pid)

        assert problem is not None
        assert "permission denied" in problem
        assert "run all projectors as one role" in problem
    assert user.info.transaction_status
