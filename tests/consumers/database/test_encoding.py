"""Texts reach the tables as the log has them, whatever encoding surrounds the projector."""

import pytest

from consumers.database.connection import connected
from consumers.database.location import database_engine
from consumers.database.migrate import migrate
from consumers.errors import MismatchError
from consumers.projection.loop import ProjectionLoop
from tests.reference_fold.histories import history
from tests.reference_fold.writers import LoggedEvent
from tests.support.logs import memory_log
from tests.support.memory_log import MemoryReader
from tests.support.postgres import PostgresServer, one

pytestmark = pytest.mark.services
TEXT = "naïve 日本語 😀"


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "EUC_JP"])
def test_a_database_that_cannot_hold_every_text_is_refused_by_name(
    postgres: PostgresServer, encoding: str
) -> None:
    name = postgres.create(encoding=encoding)

    with pytest.raises(MismatchError, match=f"{name} has the encoding {encoding}.*'UTF8'"):
        migrate(postgres.url(name))
    with (
        pytest.raises(MismatchError, match="encoding"),
        database_engine(postgres.url(name)).connect(),
    ):
        pass

    postgres.drop(name)


def test_neither_the_environment_nor_a_role_changes_what_is_written(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    events = [
        LoggedEvent(event.subject, event.value.replace(b'"//host/1"', f'"//{TEXT}"'.encode()))
        for event in history("a", 1)
    ]
    log = memory_log(events)

    ProjectionLoop(MemoryReader(log), migrated_url).run_once()

    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT source FROM cua.stream_position")
        assert (f"//{TEXT}",) in cursor.fetchall()
    assert one(migrated_url, "SELECT count(*) FROM cua.unapplied_record") == 0
