"""Whatever is missing of the tables is named by every command and made again by a rebuild.

Whoever rebuilds owns the tables and is no superuser.
"""

import pytest
import sqlalchemy as sa

from consumers.database.connection import connected
from consumers.database.known_revisions import newest_revision
from consumers.database.migrate import migrate, schema_differences
from consumers.database.readiness import make_ready
from consumers.database.shape import find_problems
from consumers.errors import MismatchError
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.rebuild import RebuildReport, compare, rebuild
from consumers.rebuild.verify import verify
from consumers.tables import OPS_SCHEMA, SCHEMA, Base
from tests.reference_fold.histories import Shape
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.rebuilding import UnreadableReader

pytestmark = pytest.mark.services
SMALL = Shape(steps=1, groups=1, group_size=1, turns=1)
TABLES = [table for table in Base.metadata.sorted_tables if table.schema == SCHEMA]
NUM_REBUILDS = 2
"""Which share the tables: each is damaged in one."""


def _name(table: sa.Table) -> str:
    return f'{table.schema}."{table.name}"'


def _last(table: sa.Table) -> str:
    """A column that is no key."""
    return [column.name for column in table.columns if not column.primary_key][-1]


WHOLE = {
    "the schema cua is missing": "DROP SCHEMA cua CASCADE",
    "the column cua.rollout.status is missing": "ALTER TABLE cua.rollout DROP COLUMN status",
    "the column cua.turn.reward allows NULL but must be NOT NULL": (
        "ALTER TABLE cua.turn ALTER COLUMN reward DROP NOT NULL"
    ),
}
ALTERED = {
    "cua.rollout.reward has the type text": "ALTER TABLE cua.rollout ALTER COLUMN reward TYPE text",
    "the column cua.rollout.reward is NOT NULL but must allow NULL": (
        "UPDATE cua.rollout SET reward = 0 WHERE reward IS NULL; ALTER TABLE cua.rollout ALTER"
        " COLUMN reward SET NOT NULL"
    ),
    "cua.turn.mine, which a user added, is NOT NULL without a default": (
        "ALTER TABLE cua.turn ADD COLUMN mine text NOT NULL DEFAULT ''; ALTER TABLE cua.turn ALTER"
        " COLUMN mine DROP DEFAULT"
    ),
}
PARTS = {
    **{
        f"the table {table.schema}.{table.name} is missing": f"DROP TABLE {_name(table)}"
        for table in TABLES
    },
    **{
        f"the column {table.schema}.{table.name}.{_last(table)} is missing": (
            f"ALTER TABLE {_name(table)} DROP COLUMN {_last(table)}"
        )
        for table in TABLES
    },
    **{
        f"the primary key {table.primary_key.name}": (
            f"ALTER TABLE {_name(table)} DROP CONSTRAINT {table.primary_key.name}"
        )
        for table in TABLES
    },
    **{
        f"the index {index.name} of": f"DROP INDEX {table.schema}.{index.name}"
        for table in TABLES
        for index in table.indexes
    },
    **{
        f"the constraint {constraint.name} of": (
            f"ALTER TABLE {_name(table)} DROP CONSTRAINT {constraint.name}"
        )
        for table in TABLES
        for constraint in table.constraints
        if isinstance(constraint, sa.UniqueConstraint | sa.CheckConstraint)
    },
}


@pytest.fixture
def migrated_url(owners_url: str) -> str:
    """The database of an owner without other privileges."""
    return owners_url


@pytest.fixture(scope="module")
def log() -> MemoryLog:
    return memory_log(logged_events("a", shape=SMALL))


def problems(url: str) -> list[str]:
    with connected(url, "test") as connection, connection, connection.cursor() as cursor:
        return [problem.text for problem in find_problems(cursor, (SCHEMA, OPS_SCHEMA))]


def test_each_thing_that_is_missing_is_named(migrated_url: str) -> None:
    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        for text, statement in (WHOLE | ALTERED | PARTS).items():
            cursor.execute(statement)
            found = [problem.text for problem in find_problems(cursor)]
            assert any(text in item for item in found), (text, found)
            connection.rollback()
        assert find_problems(cursor) == []


def damage(url: str, *statements: str) -> None:
    with connected(url, "test") as connection, connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def rebuild_whole(url: str, log: MemoryLog) -> RebuildReport:
    make_ready(url, embedded=False, mends=True)
    report = rebuild(MemoryReader(log), url)
    assert problems(url) == []
    make_ready(url, embedded=False)
    return report


def parts_of(table: sa.Table) -> list[str]:
    """Statements that drop its indexes, keys and a column."""
    indexes = [f"DROP INDEX {table.schema}.{index.name}" for index in table.indexes]
    parts = [part for part in PARTS.values() if part.startswith(f"ALTER TABLE {_name(table)} DROP")]
    assert len(parts) > 1
    # Constraints first: a column takes its own with it.
    return [*indexes, *sorted(parts, key=lambda item: "DROP COLUMN" in item)]


@pytest.mark.parametrize("first", range(NUM_REBUILDS))
def test_tables_or_their_columns_keys_and_indexes_are_built_again(
    migrated_url: str, log: MemoryLog, first: int
) -> None:
    tables = TABLES[first::NUM_REBUILDS]
    ProjectionLoop(MemoryReader(log), migrated_url).run_once()
    damage(migrated_url, *(f"DROP TABLE {_name(table)}" for table in tables))
    rebuild_whole(migrated_url, log)

    damage(migrated_url, *(part for table in tables for part in parts_of(table)))
    rebuild_whole(migrated_url, log)
    assert verify(MemoryReader(log), migrated_url).equal


@pytest.mark.parametrize("texts", [[*WHOLE][:1], [*WHOLE][1:]], ids=["schema", "columns"])
def test_schemas_and_lost_columns_are_named_by_verify_check_and_rebuild(
    migrated_url: str, log: MemoryLog, texts: list[str]
) -> None:
    ProjectionLoop(MemoryReader(log), migrated_url).run_once()
    damage(migrated_url, *(WHOLE[text] for text in texts))

    found = verify(MemoryReader(log), migrated_url)
    assert not found.equal
    for text in texts:
        assert any(text in missing for missing in found.missing), found.missing
    for report in (compare(MemoryReader(log), migrated_url), rebuild_whole(migrated_url, log)):
        assert not report.equal
        assert not report.was_empty
        for text in texts:
            assert any(text in missing for missing in report.missing), report.missing

    assert schema_differences(migrated_url) == []
    assert migrate(migrated_url) == (newest_revision(), newest_revision())
    assert verify(MemoryReader(log), migrated_url).equal
    assert compare(MemoryReader(log), migrated_url).equal


def test_rows_that_a_dropped_schema_had_count_as_changed(migrated_url: str, log: MemoryLog) -> None:
    ProjectionLoop(MemoryReader(log), migrated_url).run_once()
    damage(migrated_url, "DROP SCHEMA cua CASCADE")
    report = rebuild_whole(migrated_url, log)
    assert report.changed == sum(report.tables.values()) > 0


FATAL = [
    "the schema cua is missing",
    "the table cua.turn is missing",
    "the table cua.reader_position is missing",
    "the column cua.rollout.status is missing",
    "the primary key pk_rollout",
]


@pytest.mark.parametrize("text", FATAL)
def test_commands_that_cannot_work_without_it_name_it_and_say_rebuild(
    migrated_url: str, text: str
) -> None:
    with connected(migrated_url, "test") as connection, connection, connection.cursor() as cursor:
        cursor.execute((WHOLE | PARTS)[text])

    for embedded in (False, True):
        with pytest.raises(MismatchError, match="`cua-project rebuild` repairs the tables") as e:
            make_ready(migrated_url, embedded=embedded)
        assert text in str(e.value)


LOST = {
    "the schema cua_ops is missing": "DROP SCHEMA cua_ops CASCADE",
    "no revision in cua_ops.alembic_version": "DELETE FROM cua_ops.alembic_version",
    "but no revision in": "DROP TABLE cua_ops.alembic_version",
    "the table cua_ops.lease is missing": "DROP TABLE cua_ops.lease",
    "the column cua_ops.lease.renewed_at": "ALTER TABLE cua_ops.lease DROP COLUMN renewed_at",
}


@pytest.mark.parametrize("text", LOST)
def test_what_is_lost_of_cua_ops_is_refused_with_what_makes_everything_again(
    migrated_url: str, log: MemoryLog, text: str
) -> None:
    damage(migrated_url, LOST[text])

    for work in (
        lambda: make_ready(migrated_url, embedded=True),
        lambda: make_ready(migrated_url, embedded=False, mends=True),
        lambda: rebuild(MemoryReader(log), migrated_url),
    ):
        with pytest.raises(MismatchError, match=r"DROP SCHEMA IF EXISTS cua, cua_ops") as error:
            work()
        assert text.replace("the schema cua_ops is missing", "cua_ops") in str(error.value)


def test_what_users_put_on_a_table_outlives_the_mending_of_it(
    migrated_url: str, log: MemoryLog
) -> None:
    ProjectionLoop(MemoryReader(log), migrated_url).run_once()
    damage(
        migrated_url,
        "ALTER TABLE cua.rollout ADD COLUMN mine text DEFAULT 'x'",
        "ALTER TABLE cua.rollout DROP COLUMN task_success CASCADE",
        "CREATE INDEX mine ON cua.rollout (reward); GRANT SELECT (reward) ON cua.rollout TO PUBLIC",
        "UPDATE cua.rollout SET mine = id::text",
    )

    rebuild_whole(migrated_url, log)

    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT bool_and(mine = id::text), to_regclass('cua.mine') IS NOT NULL, (SELECT attacl"
            " IS NOT NULL FROM pg_attribute WHERE attrelid = 'cua.rollout'::regclass AND attname ="
            " 'reward') FROM cua.rollout"
        )
        assert cursor.fetchone() == (True, True, True)


def test_a_missing_index_stops_nothing(migrated_url: str) -> None:
    with connected(migrated_url, "test") as connection, connection, connection.cursor() as cursor:
        cursor.execute("DROP INDEX cua.ix_rollout_task_id")

    make_ready(migrated_url, embedded=False)

    assert problems(migrated_url) == ["the index ix_rollout_task_id of cua.rollout is missing"]


@pytest.mark.parametrize("text", ALTERED)
def test_a_column_that_was_altered_is_refused_before_the_replay_and_filled_again_once_it_is_dropped(
    migrated_url: str, log: MemoryLog, text: str
) -> None:
    ProjectionLoop(MemoryReader(log), migrated_url).run_once()
    damage(migrated_url, ALTERED[text])
    for checked in (
        compare(MemoryReader(log), migrated_url),
        verify(MemoryReader(log), migrated_url),
    ):
        (missing,) = checked.missing
        assert text in missing
        assert "or drop it" in missing

    for work in (
        lambda: make_ready(migrated_url, embedded=True),
        lambda: rebuild(UnreadableReader(log), migrated_url),
    ):
        with pytest.raises(MismatchError, match="or drop it") as error:
            work()
        assert text in str(error.value)

    table, column = ("turn", "mine") if "mine" in text else ("rollout", "reward")
    damage(migrated_url, f"ALTER TABLE cua.{table} DROP COLUMN {column}")
    rebuild_whole(migrated_url, log)
    assert verify(MemoryReader(log), migrated_url).equal
