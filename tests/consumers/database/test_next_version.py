"""The next version and this one meet on one database, with a revision that is made here."""

import os
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from consumers.database.revision import DEVELOPMENT
from schemas.installation import read_installation
from tests.reference_fold.histories import Shape
from tests.support.forked_command import run_command
from tests.support.logs import logged_events, write_local_log
from tests.support.next_revision import REVISION, NextVersion, make_next_version
from tests.support.postgres import execute, one

pytestmark = pytest.mark.services
Run = Callable[..., "CompletedProcess[str]"]
NAMES = "SELECT string_agg(run_name, ',' ORDER BY run_name) FROM cua.training"
MINE = "SELECT count(*) FROM public.mine"
LENGTHS = "SELECT array_agg(name_length ORDER BY run_name) FROM cua.training"


@pytest.fixture(scope="module")
def next_version(tmp_path_factory: pytest.TempPathFactory) -> NextVersion:
    return make_next_version(tmp_path_factory.mktemp("next-version"))


@pytest.fixture
def this(migrated_url: str) -> Run:
    """This version, whose tables have two trainings."""
    shape = Shape(steps=1, groups=1, group_size=1, turns=1)
    events = logged_events("one", "three", shape=shape)
    write_local_log(read_installation(os.environ).local_log_path, events)

    def run(*words: str) -> "CompletedProcess[str]":
        return run_command("consumers", *words, environ=os.environ | {"DATABASE_URL": migrated_url})

    assert run("run", "--once").returncode == 0
    return run


def refused(done: "CompletedProcess[str]", *texts: str) -> None:
    assert done.returncode == 4, done
    for text in texts:
        assert text in done.stderr


def test_the_next_revision_comes_after_those_of_development_versions() -> None:
    assert max(DEVELOPMENT) < REVISION


def test_an_upgrade_keeps_the_rows_readable_and_a_rebuild_fills_the_new_column(
    migrated_url: str, this: Run, next_version: NextVersion
) -> None:
    def following(*words: str) -> "CompletedProcess[str]":
        return next_version.run(*words, url=migrated_url)

    refused(following("run", "--once"), f"needs revision {REVISION}", "run `cua-project migrate`")
    checked = following("migrate", "--check")
    refused(checked, "run `cua-project migrate`")
    assert f"revision: 0001 instead of {REVISION}" in checked.stdout

    done = following("migrate")
    assert done.stdout == f"at revision {REVISION} (before: 0001)\n", done
    # The rows of this version are readable, and this version leaves them to the next one.
    assert one(migrated_url, NAMES) == "one,three"
    assert one(migrated_url, LENGTHS) == [None, None]
    refused(this("run", "--once"), f"at revision {REVISION}", "Install the newer cua-train")
    assert following("migrate", "--check").returncode == 0

    refused(following("run", "--once"), "run `cua-project rebuild`")
    assert following("rebuild").returncode == 0
    assert one(migrated_url, LENGTHS) == [3, 5]
    assert following("verify").returncode == 0
    assert following("run", "--once").returncode == 0


def test_after_a_downgrade_this_version_asks_for_a_rebuild(
    migrated_url: str, this: Run, next_version: NextVersion
) -> None:
    """What a user made of our views stays on the way there and back."""
    execute(migrated_url, "CREATE VIEW public.mine AS SELECT outcome FROM cua.rollout_summary")
    for words in (("migrate",), ("rebuild",), ("migrate", "--to", "-1")):
        done = next_version.run(*words, url=migrated_url)
        assert done.returncode == 0, done

    assert one(migrated_url, NAMES) == "one,three"
    assert one(migrated_url, MINE) == one(migrated_url, "SELECT count(*) FROM cua.rollout")
    refused(this("run", "--once"), "run `cua-project rebuild`")
    assert this("rebuild").returncode == 0
    assert this("verify").returncode == 0
    assert this("run", "--once").returncode == 0


def test_what_a_user_has_under_the_new_name_is_named_and_stays(
    migrated_url: str, this: Run, next_version: NextVersion
) -> None:
    added = this("psql", "-c", "ALTER TABLE cua.training ADD name_length text")
    assert added.returncode == 0, added

    done = next_version.run("migrate", url=migrated_url)

    assert done.returncode == 1, done
    assert "the migration to head failed and was rolled back" in done.stderr
    assert "name_length" in done.stderr
    assert one(migrated_url, "SELECT version_num FROM cua_ops.alembic_version") == "0001"
