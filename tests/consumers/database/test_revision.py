"""A database newer or older than the code says so and what to do, and nothing is changed."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from consumers.database.connection import connected
from consumers.database.known_revisions import newest_revision
from consumers.database.lease import acquire
from consumers.database.migrate import migrate, schema_differences
from consumers.database.readiness import make_ready
from consumers.database.revision import Age, look, read_revision
from consumers.errors import CuaProjectError, MismatchError
from consumers.projection.loop import OutdatedTablesError, ProjectionLoop
from consumers.rebuild.rebuild import rebuild
from consumers.rebuild.verify import verify
from consumers.tables import PROJECTION_VERSION
from tests.reference_fold.histories import Shape
from tests.support.command import Call, call
from tests.support.forked_command import run_command
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryReader
from tests.support.paths import ROOT
from tests.support.postgres import execute, one

__all__ = ["call"]

pytestmark = pytest.mark.services
RELEASE_2 = ROOT / "tests" / "data" / "release_2" / "tables.sql"
NEWER = {
    "a revision that this code does not have": (
        "UPDATE cua_ops.alembic_version SET version_num = '9999'",
        "the database is at revision 9999, which this version of cua-train does not have",
    ),
    "a known and an unknown revision": (
        "INSERT INTO cua_ops.alembic_version VALUES ('9999')",
        "9999, which this version of cua-train does not have",
    ),
    "rows of a newer projection": (
        f"INSERT INTO cua.projection VALUES (1, gen_random_uuid(), {PROJECTION_VERSION + 1}, 'x')"
        f" ON CONFLICT (one) DO UPDATE SET version = {PROJECTION_VERSION + 1}",
        "the tables were filled by a newer version of cua-train",
    ),
}
COMMANDS = (
    ("run", "--once"),
    ("up",),
    ("rebuild",),
    ("rebuild", "--check"),
    ("migrate",),
    ("migrate", "--check"),
    ("verify",),
    ("status",),
    ("parked", "list"),
    ("tasks",),
    ("monitor",),
)


def content(url: str) -> object:
    with connected(url, "test") as connection, connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT array_agg(oid ORDER BY oid) FROM pg_class WHERE relkind = 'r'), (SELECT"
            " array_agg(version_num ORDER BY 1) FROM cua_ops.alembic_version), (SELECT"
            " array_agg(projection::text) FROM cua.projection)"
        )
        return cursor.fetchone()


@pytest.mark.parametrize("what", NEWER)
@pytest.mark.parametrize("embedded", [True, False])
def test_older_code_refuses_a_newer_database_and_changes_nothing(
    migrated_url: str, what: str, embedded: bool
) -> None:
    statement, problem = NEWER[what]
    execute(migrated_url, statement)
    before = content(migrated_url)

    for migrates in (None, True, False):
        for mends in (True, False):
            with pytest.raises(MismatchError, match=problem) as error:
                make_ready(migrated_url, embedded=embedded, migrate=migrates, mends=mends)
            assert "nothing was changed" in str(error.value)

    assert content(migrated_url) == before


@pytest.mark.parametrize(
    ("command", "what"),
    [
        *((command, "a revision that this code does not have") for command in COMMANDS),
        *((command, "rows of a newer projection") for command in (("migrate",), ("monitor",))),
    ],
    ids=lambda item: " ".join(item) if isinstance(item, tuple) else "",
)
def test_every_command_says_that_the_database_is_newer(
    migrated_url: str, command: tuple[str, ...], what: str
) -> None:
    statement, problem = NEWER[what]
    execute(migrated_url, statement)
    before = content(migrated_url)

    done = run_command("consumers", *command, environ={**os.environ, "DATABASE_URL": migrated_url})

    assert (done.returncode, done.stdout) == (4, ""), done
    assert done.stderr.count("\n") == 1
    assert problem in done.stderr
    assert "; nothing was changed. Install t" in done.stderr
    assert done.stderr.endswith(("that migrated it\n", "that version\n"))
    assert content(migrated_url) == before


NEEDS_TABLES = (
    *COMMANDS[:4],
    ("rebuild", "--run", "a"),
    ("rebuild", "--drop", "x"),
    ("verify",),
    ("status",),
    ("status", "--check"),
    ("parked", "list"),
    ("parked", "show", "cua.rollouts/3@1"),
    ("parked", "redrive"),
    ("parked", "drop", "cua.rollouts/3@1"),
    ("parked", "drop", "--undo", "rollout/x"),
    ("tasks",),
)


@pytest.mark.parametrize("command", NEEDS_TABLES, ids=" ".join)
def test_every_command_that_needs_the_tables_refuses_an_older_database(
    migrated_url: str, call: Call, command: tuple[str, ...]
) -> None:
    """Exit 4: what an operator must mend, so that no service is started again for ever."""
    migrate(migrated_url, "0004")
    before = content(migrated_url)

    code, out, err = call(*command)

    assert (code, out) == (4, "")
    assert "is at revision 0004, and this version needs" in err
    assert err.endswith("run `cua-project migrate`\n")
    assert content(migrated_url) == before


def test_a_database_of_others_without_our_tables_is_exit_4_for_a_projector(
    database_url: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(database_url, "CREATE TABLE public.theirs (a int)")
    monkeypatch.setenv("DATABASE_URL", database_url)
    assert call("run").code == 4


def test_no_unit_restarts_a_service_that_needs_a_person() -> None:
    restarting = 0
    for unit in sorted((ROOT / "docs/systemd").glob("*.service")):
        lines = re.findall(r"(?m)^(Restart|RestartPreventExitStatus)=(.*)", unit.read_text())
        settings = dict(lines)
        if "Restart" in settings:
            restarting += 1
            assert {"2", "4"} <= set(settings["RestartPreventExitStatus"].split()), unit.name
    assert restarting == 3


def test_migrating_a_newer_database_is_refused(migrated_url: str) -> None:
    execute(migrated_url, NEWER["a revision that this code does not have"][0])

    for target in ("head", "base", "-1", newest_revision()):
        with pytest.raises(MismatchError, match="Install the newer cua-train"):
            migrate(migrated_url, target)


@pytest.mark.parametrize(
    ("statement", "age"),
    [
        ("SELECT 1", Age.CURRENT),
        ("UPDATE cua_ops.alembic_version SET version_num = '0000'", Age.OLDER),
        ("DELETE FROM cua_ops.alembic_version", Age.DAMAGED),
        ("DROP TABLE cua_ops.alembic_version", Age.DAMAGED),
        ("ALTER TABLE cua_ops.alembic_version RENAME version_num TO v", Age.DAMAGED),
        ("INSERT INTO cua_ops.alembic_version VALUES ('0000')", Age.DAMAGED),
        ("DROP SCHEMA cua CASCADE; DROP SCHEMA cua_ops CASCADE", Age.EMPTY),
        ("DROP SCHEMA cua CASCADE", Age.CURRENT),
    ],
)
def test_the_age_of_a_database(migrated_url: str, statement: str, age: Age) -> None:
    newest = newest_revision()
    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        cursor.execute(statement)

        assert read_revision(cursor, ("0000", newest), newest).age is age


def test_no_rebuild_beside_an_older_projector(migrated_url: str) -> None:
    log = memory_log(logged_events("a", shape=Shape(steps=1, groups=1, group_size=1, turns=1)))
    with connected(migrated_url, "older projector") as older:
        with older, older.cursor() as cursor:
            acquire(cursor, "old")
            cursor.execute("UPDATE cua_ops.lease SET projection_version = 0")

        with pytest.raises(CuaProjectError, match="an older projector is running"):
            rebuild(MemoryReader(log), migrated_url)


Upgrade = Callable[[str], None]


def code_first(url: str) -> None:
    """The new code meets the stored database before it is migrated."""
    if newest_revision() != "0001":
        with pytest.raises(
            CuaProjectError, match=r"is at revision 0001.*run `cua-project migrate`"
        ):
            make_ready(url, embedded=False)
    migrate(url)


def database_first(url: str) -> None:
    """The database is migrated while the old code still runs, and refuses it from then on."""
    migrate(url)
    with connected(url, "old code") as connection, connection.cursor() as cursor:
        revision = read_revision(cursor, ("0001",), "0001")
    assert revision.age is (Age.CURRENT if newest_revision() == "0001" else Age.NEWER)


@pytest.mark.parametrize("upgrade", [code_first, database_first])
def test_tables_of_release_2_are_upgraded_in_either_order(
    database_url: str, release_1_home: Path, upgrade: Upgrade
) -> None:
    """`tests/data/release_2/tables.sql`: what release 2 made of release 1's log. Never edit it."""
    from consumers.log.local import LocalLogReader

    execute(database_url, RELEASE_2.read_text("utf-8"))
    upgrade(database_url)
    make_ready(database_url, embedded=False)
    reader = LocalLogReader(release_1_home / "log" / "log.sqlite3", topic_prefix="cua.")
    try:
        try:
            ProjectionLoop(reader, database_url).run_once()
        except OutdatedTablesError:
            rebuild(reader, database_url)
            ProjectionLoop(reader, database_url).run_once()
        assert verify(reader, database_url).equal
        assert rebuild(reader, database_url).equal
    finally:
        reader.close()


def test_migrate_check_names_an_older_revision_of_equal_tables(migrated_url: str) -> None:
    execute(migrated_url, "UPDATE cua_ops.alembic_version SET version_num = '0002'")

    done = run_command(
        "consumers", "migrate", "--check", environ=os.environ | {"DATABASE_URL": migrated_url}
    )

    assert done.returncode == 4, done
    assert done.stdout == f"revision: 0002 instead of {newest_revision()}\n"
    assert "run `cua-project migrate`" in done.stderr


@pytest.mark.parametrize("recorded", ["0001", "0002"])
def test_an_older_revision_recorded_by_hand_is_put_right_by_migrate(
    migrated_url: str, recorded: str, caplog: pytest.LogCaptureFixture
) -> None:
    execute(migrated_url, f"UPDATE cua_ops.alembic_version SET version_num = '{recorded}'")

    assert migrate(migrated_url) == (recorded, newest_revision())

    make_ready(migrated_url, embedded=False)
    assert schema_differences(migrated_url) == []
    assert any(
        f"named revision {recorded}, but the tables are those of revision" in message
        for message in caplog.messages
    )


def test_tables_between_the_recorded_revision_and_the_newest_are_migrated_from_theirs(
    database_url: str,
) -> None:
    migrate(database_url, "0002")
    execute(database_url, "UPDATE cua_ops.alembic_version SET version_num = '0001'")

    assert migrate(database_url) == ("0001", newest_revision())
    assert schema_differences(database_url) == []


def test_a_recorded_revision_that_fits_nothing_is_refused_and_changes_nothing(
    migrated_url: str,
) -> None:
    # A column of the newest is missing as well: no revision has these tables.
    execute(
        migrated_url,
        "UPDATE cua_ops.alembic_version SET version_num = '0001';"
        "ALTER TABLE cua.training DROP COLUMN seed",
    )
    with pytest.raises(CuaProjectError, match="failed and was rolled back") as refused:
        migrate(migrated_url)
    assert look(migrated_url).found == ("0001",)

    assert "DELETE FROM cua_ops.alembic_version'`, then `cua-project rebuild`" in str(refused.value)
    execute(migrated_url, "DELETE FROM cua_ops.alembic_version")
    log = memory_log(logged_events("a", shape=Shape(steps=1, groups=1, group_size=1, turns=1)))
    rebuild(MemoryReader(log), migrated_url)
    assert schema_differences(migrated_url) == []
    make_ready(migrated_url, embedded=False)


def test_after_a_downgrade_older_code_asks_for_a_rebuild(migrated_url: str) -> None:
    log = memory_log(logged_events("a", shape=Shape(steps=1, groups=1, group_size=1, turns=1)))
    ProjectionLoop(MemoryReader(log), migrated_url).run_once()

    migrate(migrated_url, "0010")

    # The code of that revision has projection version 6.
    assert one(migrated_url, "SELECT version FROM cua.projection") == 5
