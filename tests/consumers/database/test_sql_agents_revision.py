"""Revision 0008: tables of SQL agents come without a rebuild, and are never taken for complete."""

from collections.abc import Iterator

import pytest

from consumers.database.migrate import migrate, schema_differences
from consumers.database.readiness import make_ready
from consumers.database.revision import look
from consumers.errors import CuaProjectError
from consumers.projection.loop import OutdatedTablesError, ProjectionLoop
from consumers.rebuild.rebuild import rebuild
from consumers.rebuild.verify import verify
from tests.reference_fold.histories import history
from tests.reference_fold.writers import LoggedEvent
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import execute
from tests.support.postgres import one as one_value

pytestmark = pytest.mark.services

NEW = (b"cua.entry.", b"cua.session.", b"cua.completion.", b"cua.training.skills_measured")


@pytest.fixture(scope="module")
def events() -> list[LoggedEvent]:
    return history("demo", 1)


def before_sql(events: list[LoggedEvent]) -> Iterator[LoggedEvent]:
    """What was logged before the first event of an SQL agent."""
    for event in events:
        if any(b'"type":"' + name in event.value for name in NEW):
            return
        yield event


def append(log: MemoryLog, events: list[LoggedEvent]) -> None:
    for event in events:
        log.append(event.subject, event.value)


def count(url: str, table: str) -> object:
    return one_value(url, f'SELECT count(*) FROM cua."{table}"')


def project(log: MemoryLog, url: str) -> None:
    ProjectionLoop(MemoryReader(log), url).run_once()


def test_tables_of_revision_0007_become_those_of_0008_without_a_rebuild(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    earlier = list(before_sql(events))
    assert 0 < len(earlier) < len(events)
    log = MemoryLog()
    append(log, earlier)
    project(log, migrated_url)

    assert migrate(migrated_url, "0007") == ("0011", "0007")
    with pytest.raises(CuaProjectError, match=r"is at revision 0007.*run `cua-project migrate`"):
        make_ready(migrated_url, embedded=False)
    assert migrate(migrated_url, "0008") == ("0007", "0008")
    assert one_value(migrated_url, "SELECT version FROM cua.projection") == 5

    # Revision 0009 fills its columns by a rebuild.
    assert migrate(migrated_url) == ("0008", "0011")
    assert schema_differences(migrated_url) == []
    append(log, events[len(earlier) :])
    rebuild(MemoryReader(log), migrated_url)
    project(log, migrated_url)
    assert count(migrated_url, "entry") == 2
    assert count(migrated_url, "step_score") == 4
    assert verify(MemoryReader(log), migrated_url).equal


def test_rows_that_a_downgrade_drops_come_back_by_the_rebuild_that_an_upgrade_asks_for(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    log = MemoryLog()
    append(log, events)
    project(log, migrated_url)
    num_skills = count(migrated_url, "skill_success")
    assert num_skills == 6

    migrate(migrated_url, "0007")
    migrate(migrated_url)

    assert count(migrated_url, "skill_success") == 0
    with pytest.raises(OutdatedTablesError, match="run `cua-project rebuild`"):
        project(log, migrated_url)
    rebuild(MemoryReader(log), migrated_url)
    assert count(migrated_url, "skill_success") == num_skills
    project(log, migrated_url)
    assert verify(MemoryReader(log), migrated_url).equal


def test_what_older_code_parked_is_applied_by_the_first_start_after_the_upgrade(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    log = MemoryLog()
    append(log, events)
    # To older code these types and versions are unknown, as is a version 9 to this code.
    unknown = [
        LoggedEvent(event.subject, event.value.replace(b".stated:1", b".stated:9"))
        if b'"type":"cua.entry.stated"' in event.value
        else event
        for event in events
    ]
    older = MemoryLog()
    append(older, unknown)
    project(older, migrated_url)
    assert count(migrated_url, "entry") == 0
    assert count(migrated_url, "held_record") != 0
    execute(
        migrated_url,
        "UPDATE cua.held_record SET value = convert_to(replace(convert_from(value, 'UTF8'),"
        " '.stated:9', '.stated:1'), 'UTF8'); UPDATE cua.projection SET catalogue_hash = 'older'",
    )

    project(older, migrated_url)

    assert count(migrated_url, "held_record") == 0
    assert count(migrated_url, "entry") == 2
    assert verify(MemoryReader(log_like(older, log)), migrated_url).equal


def log_like(log: MemoryLog, records_of: MemoryLog) -> MemoryLog:
    """A log of the same id with the records of another."""
    records_of.log_id = log.log_id
    return records_of


def test_down_to_0007_and_up_again_leaves_no_trace(migrated_url: str) -> None:
    migrate(migrated_url, "0007")
    assert look(migrated_url).found == ("0007",)
    left = (
        "SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace"
        " WHERE nspname = 'cua' AND relname ~ '^(entry|session|completion|skill|sql_|step_score)"
        "|^ix_training_block'"
    )
    assert one_value(migrated_url, left) == 0
    migrate(migrated_url)
    assert schema_differences(migrated_url) == []


@pytest.mark.parametrize(
    ("theirs", "named"),
    [
        ("CREATE VIEW cua.session_summary AS SELECT 1 AS x", "session_summary"),
        ("CREATE TABLE cua.session (x int)", "session"),
    ],
)
def test_what_a_user_already_has_under_a_new_name_is_named_and_stays(
    migrated_url: str, theirs: str, named: str
) -> None:
    migrate(migrated_url, "0007")
    execute(migrated_url, theirs)
    with pytest.raises(CuaProjectError, match=named):
        migrate(migrated_url)
    columns = (
        "SELECT array_agg(attname::text) FROM pg_attribute WHERE attnum > 0 AND attrelid ="
        f" 'cua.{named}'::regclass"
    )
    assert one_value(migrated_url, columns) == ["x"]
