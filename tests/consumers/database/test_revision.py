"""A database newer or older than the code says so and what to do, and nothing is changed."""

import os
import re
import shlex
import sys
from itertools import product
from pathlib import Path

import pytest

from consumers.database.connection import connected
from consumers.database.known_revisions import newest_revision
from consumers.database.lease import acquire
from consumers.database.migrate import migrate
from consumers.database.readiness import make_ready
from consumers.database.revision import Age, read_revision
from consumers.errors import CuaProjectError, MismatchError
from consumers.rebuild.rebuild import rebuild
from consumers.tables import PROJECTION_VERSION
from schemas.installation import read_installation
from tests.reference_fold.histories import Shape
from tests.support.command import Call, call
from tests.support.forked_command import run_command
from tests.support.logs import logged_events, memory_log, write_local_log
from tests.support.memory_log import MemoryReader
from tests.support.paths import ROOT
from tests.support.postgres import execute, one

__all__ = ["call"]

pytestmark = pytest.mark.services
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
WAYS = tuple(product((True, False), (None, True, False), (True, False)))
"""Of making tables ready: embedded, migrate, mends."""


def content(url: str) -> object:
    with connected(url, "test") as connection, connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT array_agg(oid ORDER BY oid) FROM pg_class WHERE relkind = 'r'), (SELECT"
            " array_agg(version_num ORDER BY 1) FROM cua_ops.alembic_version), (SELECT"
            " array_agg(projection::text) FROM cua.projection)"
        )
        return cursor.fetchone()


@pytest.mark.parametrize("what", NEWER)
def test_older_code_refuses_a_newer_database_and_changes_nothing(
    migrated_url: str, what: str
) -> None:
    statement, problem = NEWER[what]
    execute(migrated_url, statement)
    before = content(migrated_url)

    for embedded, migrates, mends in WAYS:
        with pytest.raises(MismatchError, match=problem) as error:
            make_ready(migrated_url, embedded=embedded, migrate=migrates, mends=mends)
        assert "nothing was changed" in str(error.value)

    assert content(migrated_url) == before


@pytest.mark.parametrize(
    ("what", "commands"),
    [
        ("a revision that this code does not have", COMMANDS),
        ("rows of a newer projection", (("migrate",), ("monitor",))),
    ],
    ids=["revision", "projection"],
)
def test_every_command_says_that_the_database_is_newer(
    migrated_url: str, commands: tuple[tuple[str, ...], ...], what: str
) -> None:
    statement, problem = NEWER[what]
    execute(migrated_url, statement)
    before = content(migrated_url)
    environ = {**os.environ, "DATABASE_URL": migrated_url}

    for command in commands:
        done = run_command("consumers", *command, environ=environ)

        assert (done.returncode, done.stdout) == (4, ""), done
        assert done.stderr.count("\n") == 1, done
        assert problem in done.stderr, done
        assert "; nothing was changed. Install t" in done.stderr, done
        assert done.stderr.endswith(("that migrated it\n", "that version\n")), done
        assert content(migrated_url) == before, done


NEEDS_TABLES = (
    *COMMANDS[:4],
    ("rebuild", "--run", "a"),
    ("rebuild", "--drop", "x"),
    ("verify",),
    ("status",),
    ("status", "--check"),
    ("parked", "list"),
    ("parked", "show", "cua.rollouts/3@1"),
    ("parked", "retry"),
    ("parked", "drop", "cua.rollouts/3@1"),
    ("parked", "drop", "--undo", "rollout/x"),
    ("tasks",),
)
SHOW = ("show", "a")


DEVELOPMENT_VERSIONS = {
    "revision 0005": "UPDATE cua_ops.alembic_version SET version_num = '0005'",
    "revision 0011": "UPDATE cua_ops.alembic_version SET version_num = '0011'",
    "projection version 1": "1",
    "projection version 9": "9",
}
MAKE_AGAIN = (
    "nothing was changed. Run `{0} psql -c 'DROP SCHEMA IF EXISTS cua, cua_ops CASCADE'`,"
    " then `{0} migrate`: `{0} run` fills the new tables from the log\n"
)


@pytest.fixture
def own_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `cua-project` that no PATH names, as the one of a virtual environment."""
    own = tmp_path / "cua-project"
    own.touch(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    return own


def of_development(url: str, what: str) -> None:
    kind, _, number = what.rpartition(" ")
    execute(
        url,
        DEVELOPMENT_VERSIONS[what]
        if kind == "revision"
        else f"INSERT INTO cua.projection VALUES (1, gen_random_uuid(), {number}, 'x')",
    )


@pytest.mark.parametrize("what", ["revision 0005", "projection version 9"])
def test_every_command_refuses_a_database_of_a_development_version(
    migrated_url: str, call: Call, own_program: Path, what: str
) -> None:
    """Exit 4: what an operator must mend, so that no service is started again for ever."""
    of_development(migrated_url, what)
    before = content(migrated_url)

    for command in (*NEEDS_TABLES, ("migrate",), ("migrate", "--check"), ("monitor",), SHOW):
        code, out, err = call(*command)

        assert (code, out) == (4, ""), command
        assert "of a version of cua-train before 0.1.0" in err or "by a version" in err, command
        assert what in err, command
        assert err.endswith(MAKE_AGAIN.format(own_program)), command
        assert content(migrated_url) == before, command


@pytest.mark.parametrize("what", DEVELOPMENT_VERSIONS)
def test_no_way_to_make_tables_ready_changes_those_of_a_development_version(
    migrated_url: str, what: str
) -> None:
    of_development(migrated_url, what)
    before = content(migrated_url)
    for embedded, migrates, mends in WAYS:
        with pytest.raises(MismatchError, match=r"before 0\.1\.0"):
            make_ready(migrated_url, embedded=embedded, migrate=migrates, mends=mends)
    assert content(migrated_url) == before


def test_what_the_refusal_advises_makes_the_tables_again_and_the_log_fills_them(
    migrated_url: str, call: Call
) -> None:
    shape = Shape(steps=1, groups=1, group_size=1, turns=1)
    write_local_log(read_installation(os.environ).local_log_path, logged_events("a", shape=shape))
    of_development(migrated_url, "revision 0005")
    refusal = call("run", "--once").err
    (first, second) = re.findall(r"`[^`]* (psql .*?|migrate)`", refusal)
    for words in (shlex.split(first), [second], ["run", "--once"], ["verify"]):
        done = run_command("consumers", *words, environ={**os.environ})
        assert done.returncode == 0, done
    assert one(migrated_url, "SELECT run_name FROM cua.training") == "a"


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
        ("UPDATE cua_ops.alembic_version SET version_num = '0002'", Age.DEVELOPMENT),
        ("UPDATE cua_ops.alembic_version SET version_num = '0012'", Age.NEWER),
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
