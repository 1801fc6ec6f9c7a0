"""A database that is as it should be is read without a lock, so that nobody waits for a rebuild."""

import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from consumers.database.connection import connected
from consumers.database.known_revisions import newest_revision
from consumers.database.migrate import SCHEMA_LOCK, migrate, schema_differences
from consumers.database.readiness import make_ready, naming_what_is_missing
from consumers.errors import CuaProjectError, MismatchError
from consumers.queries.session import get_session, init_database
from consumers.queries.trainings import get_training_by_run_name
from tests.support.forked_command import run_command
from tests.support.postgres import execute

pytestmark = pytest.mark.services


@pytest.fixture
def rebuilding(migrated_url: str) -> Iterator[str]:
    """A database in which a rebuild is at work."""
    with connected(migrated_url, "rebuild lock") as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", (SCHEMA_LOCK,))
        yield migrated_url


def test_readiness_queries_and_migrations_that_have_nothing_to_do_wait_for_no_rebuild(
    rebuilding: str,
) -> None:
    began = time.monotonic()

    for embedded in (True, False):
        make_ready(rebuilding, embedded=embedded)
        make_ready(rebuilding, embedded=embedded, migrate=True)
    init_database(rebuilding)
    with get_session() as session:
        assert get_training_by_run_name(session, "none") is None
    assert migrate(rebuilding) == (newest_revision(), newest_revision())
    assert schema_differences(rebuilding) == []

    assert time.monotonic() - began < 60


def test_commands_work_while_a_rebuild_of_the_embedded_database_runs() -> None:
    def call(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return run_command("consumers", *arguments)

    try:
        assert call("run", "--once").returncode == 0
        url = call("database").stdout.strip()
        with connected(url, "rebuild lock") as other, other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", (SCHEMA_LOCK,))
            for command in (("status",), ("parked", "list"), ("run", "--once"), ("verify",)):
                done = call(*command)
                assert done.returncode == 0, (command, done.stderr)
    finally:
        call("database", "stop")


def test_processes_that_migrate_an_empty_database_at_once_all_end_well(database_url: str) -> None:
    failed: list[BaseException] = []

    def ready() -> None:
        try:
            make_ready(database_url, embedded=True)
        except BaseException as error:  # noqa: BLE001  # shown by the test
            failed.append(error)

    threads = [threading.Thread(target=ready) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert failed == []
    assert schema_differences(database_url) == []


def test_a_database_that_is_migrated_beneath_a_command_says_so(migrated_url: str) -> None:
    def read_beside_a_downgrade() -> None:
        with naming_what_is_missing(migrated_url):
            migrate(migrated_url, "base")
            execute(migrated_url, "SELECT * FROM cua.session")

    with pytest.raises(CuaProjectError, match=r"has no tables of ours.*run `cua-project migrate`"):
        read_beside_a_downgrade()


def test_a_table_that_is_dropped_beneath_a_command_is_named(migrated_url: str) -> None:
    def read_what_is_gone() -> None:
        with naming_what_is_missing(migrated_url):
            execute(migrated_url, "DROP TABLE cua.turn CASCADE")
            execute(migrated_url, "SELECT * FROM cua.turn")

    with pytest.raises(MismatchError, match=r"cua\.turn is missing.*`cua-project rebuild`"):
        read_what_is_gone()
