"""PgBouncer in front of PostgreSQL: session mode works as it comes; the others are refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from consumers.database.connection import connected
from schemas.installation import read_installation
from tests.consumers.database.test_session_settings import OURS, shown
from tests.reference_fold.histories import Shape
from tests.support.command import Call, call
from tests.support.logs import logged_events, write_local_log
from tests.support.pgbouncer import running_pgbouncer
from tests.support.postgres import one

__all__ = ["call"]

pytestmark = pytest.mark.services

SMALL = Shape(steps=1, groups=1, group_size=2, turns=2, has_trouble=False)
IGNORED = "ignore_startup_parameters = options"
ASKED = {"timezone", "datestyle", "lock_timeout", "default_transaction_isolation", "search_path"}


@pytest.mark.parametrize("settings", [(), (IGNORED,)], ids=["as it comes", "options ignored"])
def test_everything_works_in_session_mode(
    settings: tuple[str, ...], call: Call, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether PgBouncer refuses our options or drops them, our settings are in force."""
    events = logged_events("a", shape=SMALL)
    write_local_log(read_installation(os.environ).local_log_path, events)
    with running_pgbouncer(database_url, "session", *settings) as pooled:
        monkeypatch.setenv("DATABASE_URL", pooled)
        assert call("migrate").code == 0
        assert call("run", "--once", "--json").json["events"] == len(events)
        # The second gets a session that has had temporary tables.
        for _ in range(2):
            assert call("verify", "--json").json["equal"] is True
        assert call("rebuild").code == 0
        assert call("status", "--check").code == 0
        with connected(pooled, "test", {"lock_timeout": "3s"}) as connection:
            assert shown(connection, ASKED) == {name: OURS[name] for name in ASKED} | {
                "lock_timeout": "3s"
            }
            assert connection.info.parameter_status("application_name") == "cua-project test"


@pytest.mark.parametrize("pool_mode", ["transaction", "statement"])
@pytest.mark.parametrize("settings", [(), (IGNORED,)], ids=["as it comes", "options ignored"])
def test_a_pool_that_shares_server_processes_is_refused_before_anything_is_changed(
    pool_mode: str,
    settings: tuple[str, ...],
    call: Call,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running_pgbouncer(database_url, pool_mode, *settings) as pooled:
        monkeypatch.setenv("DATABASE_URL", pooled)
        for arguments in (("migrate",), ("run", "--once"), ("status",)):
            answer = call(*arguments)
            assert answer.code == 2
            assert "pool_mode=session" in answer.err
            assert "docs/roles.md" in answer.err
    assert one(database_url, "SELECT to_regnamespace('cua')") is None


def test_a_parameter_that_the_pooler_refuses_is_named_with_its_setting(
    call: Call, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_pgbouncer(database_url, "session") as pooled:
        monkeypatch.setenv("DATABASE_URL", pooled)
        monkeypatch.setenv("PGGEQO", "off")
        answer = call("migrate")
    assert answer.code == 5
    assert "unsupported startup parameter: geqo" in answer.err
    assert "ignore_startup_parameters" in answer.err
    assert "docs/roles.md" in answer.err


def test_a_pool_of_one_is_named(
    call: Call, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ("default_pool_size = 1", "query_wait_timeout = 1")
    with running_pgbouncer(database_url, "session", *small) as pooled:
        monkeypatch.setenv("DATABASE_URL", pooled)
        answer = call("run", "--once")
    assert answer.code == 5
    assert "gave one session and no second (" in answer.err
    assert "raise its pool_size" in answer.err


def test_psql_finds_the_tables_though_the_pooler_takes_no_options(
    call: Call, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_pgbouncer(database_url, "session") as pooled:
        monkeypatch.setenv("DATABASE_URL", pooled)
        assert call("migrate").code == 0
        done = subprocess.run(
            [sys.executable, "-m", "consumers", "psql", "-Atc", "SELECT count(*) FROM training"],
            env=os.environ,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_the_page_has_the_settings_that_these_tests_use() -> None:
    page = (Path(__file__).parents[3] / "docs" / "roles.md").read_text()
    assert IGNORED in page
    assert "pool_mode=session" in page
