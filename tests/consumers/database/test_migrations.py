"""Migrations make what the tables are defined as, from nothing, and can be taken back."""

import psycopg2
import pytest
import sqlalchemy as sa
from alembic.config import Config
from alembic.script import ScriptDirectory

from consumers.database.connection import connected
from consumers.database.known_revisions import (
    known_revisions,
    newest_revision,
    scripts_folder,
)
from consumers.database.lease import acquire
from consumers.database.location import libpq_url
from consumers.database.migrate import SCHEMA_LOCK, migrate, schema_connection, schema_differences
from consumers.database.revision import look
from consumers.errors import CuaProjectError, NotFoundError, UnreachableError
from tests.support.postgres import execute

pytestmark = pytest.mark.services


def test_the_known_revisions_are_those_that_alembic_finds_in_its_order() -> None:
    config = Config()
    config.set_main_option("script_location", str(scripts_folder()))
    scripts = ScriptDirectory.from_config(config)
    assert known_revisions() == tuple(one.revision for one in scripts.walk_revisions())[::-1]
    assert newest_revision() == scripts.get_current_head()


def test_there_is_no_difference_after_the_last_migration(database_url: str) -> None:
    assert migrate(database_url) == (None, newest_revision())
    assert schema_differences(database_url) == []


def test_a_missing_column_and_index_are_differences(migrated_url: str) -> None:
    execute(
        migrated_url,
        "ALTER TABLE cua.turn DROP COLUMN reward; DROP INDEX cua.ix_rollout_training_id;",
    )

    assert schema_differences(migrated_url) == [
        "the index ix_rollout_training_id of cua.rollout is missing",
        "the column cua.turn.reward is missing",
    ]


def test_what_users_put_beside_the_tables_is_no_difference(migrated_url: str) -> None:
    execute(
        migrated_url,
        "CREATE INDEX mine ON cua.obs (created_at); ALTER TABLE cua.obs ADD COLUMN mine integer;"
        "CREATE UNIQUE INDEX mine_too ON cua.turn (id, turn);"
        "ALTER TABLE cua.step ADD CONSTRAINT my_check CHECK (step >= 0);"
        "ALTER TABLE cua.step ADD CONSTRAINT my_key UNIQUE (id, step);"
        "CREATE TABLE cua.my_table (id uuid PRIMARY KEY REFERENCES cua.training (id), x integer);"
        "CREATE INDEX mine_there ON cua.my_table (x);"
        "CREATE VIEW cua.my_view AS SELECT run_name FROM cua.training;"
        "CREATE MATERIALIZED VIEW cua.my_copy AS SELECT run_name FROM cua.training;"
        "CREATE SEQUENCE cua.my_numbers; CREATE TABLE cua_ops.my_notes (note text);"
        "CREATE FUNCTION cua.my_function() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    )
    assert schema_differences(migrated_url) == []


def test_down_and_up_again_ends_where_it_began(migrated_url: str) -> None:
    assert migrate(migrated_url, "base") == (newest_revision(), None)
    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname IN ('cua', 'cua_ops') AND tablename <>"
            " 'alembic_version'"
        )
        assert cursor.fetchone() == (0,)
    with pytest.raises(CuaProjectError, match=r"has no tables of ours.*run `cua-project migrate`"):
        look(migrated_url).require_current()
    assert migrate(migrated_url) == (None, newest_revision())
    assert schema_differences(migrated_url) == []


def test_migrating_twice_changes_nothing(migrated_url: str) -> None:
    assert migrate(migrated_url) == (newest_revision(), newest_revision())


def test_an_unknown_revision_is_named_with_the_known_ones(migrated_url: str) -> None:
    with pytest.raises(NotFoundError, match=r"cannot migrate to 'nonsense'.* are .*0001"):
        migrate(migrated_url, "nonsense")


def test_plain_psql_finds_the_tables_without_naming_their_schema(migrated_url: str) -> None:
    connection = psycopg2.connect(libpq_url(migrated_url))
    try:
        with connection.cursor() as cursor:
            cursor.execute('SELECT count(*) FROM "group", status_history')
            assert cursor.fetchone() == (0,)
    finally:
        connection.close()


def test_a_migration_waits_for_nobody_who_changes_the_schema_for_long(migrated_url: str) -> None:
    with connected(migrated_url, "rebuild") as other, other, other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", (SCHEMA_LOCK,))
        with pytest.raises(CuaProjectError, match="another migration or rebuild is running"):
            migrate(migrated_url, "base", wait_s=1)


def test_no_migration_beside_an_older_projector(migrated_url: str) -> None:
    with connected(migrated_url, "older projector") as older:
        with older, older.cursor() as cursor:
            acquire(cursor, "old")
            cursor.execute("UPDATE cua_ops.lease SET projection_version = 0")
        with pytest.raises(
            CuaProjectError, match=r"an older projector is running \(old, projection version 0\)"
        ):
            migrate(migrated_url, "base")


def test_the_server_ends_a_migration_whose_process_is_stopped(migrated_url: str) -> None:
    """It has locked tables against everybody."""

    def migration() -> None:
        with schema_connection(migrated_url) as connection:
            assert connection.scalar(sa.text("SHOW idle_in_transaction_session_timeout")) == "20s"
            connection.execute(sa.text("SET idle_in_transaction_session_timeout = '200ms'"))
            connection.execute(sa.text("LOCK TABLE cua.training"))
            execute(migrated_url, "LOCK TABLE cua.training")
            connection.execute(sa.text("SELECT 1"))

    with pytest.raises(UnreachableError):
        migration()
