"""The roles of docs/roles.md can do what the page lists, with the GRANTs as they stand there."""

import os
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import psycopg2
import pytest

from schemas.installation import read_installation
from tests.reference_fold.histories import Shape
from tests.support.command import Call, Called, call
from tests.support.logs import logged_events, write_local_log
from tests.support.postgres import PostgresServer, execute, one
from tests.support.roles import PAGE, Roles, database_with_roles

__all__ = ["call"]

pytestmark = pytest.mark.services
SMALL = Shape(steps=1, groups=1, group_size=1, turns=1)
BY_OWNER, BY_ADMINISTRATOR = "owner-makes-schemas", "administrator-makes-schemas"


class Installed(NamedTuple):
    """A log, and a database with the roles."""

    roles: Roles
    run_as: Callable[..., Called]
    """`run_as(url, *arguments)`: a command that must exit with 0."""


@pytest.fixture(params=[BY_OWNER, BY_ADMINISTRATOR])
def installed(
    request: pytest.FixtureRequest,
    postgres: PostgresServer,
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Installed]:
    """Migrated by the owner, who has granted what the page says."""
    write_local_log(read_installation(os.environ).local_log_path, logged_events("a", shape=SMALL))

    def run_as(url: str, *arguments: str) -> Called:
        monkeypatch.setenv("DATABASE_URL", url)
        called = call(*arguments)
        assert called.code == 0, called
        return called

    with database_with_roles(postgres, request.param) as roles:
        run_as(roles.owner, "migrate")
        execute(roles.owner, roles.grants)
        run_as(roles.projector, "run", "--once")
        yield Installed(roles, run_as)


def test_each_role_can_do_what_the_page_lists(installed: Installed) -> None:
    roles, run_as = installed
    for arguments in (("parked", "list"), ("parked", "retry")):
        run_as(roles.projector, *arguments)
    for url in (roles.reader, roles.projector, roles.owner):
        run_as(url, "status")
        assert run_as(url, "verify", "--json").json["equal"]
        assert one(url, "SELECT count(*) FROM cua.turn_tokens") == 5
    for statement in ("DELETE FROM cua.turn", "DELETE FROM cua_ops.lease"):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            execute(roles.reader, statement)


def test_verify_leaves_nothing_and_makes_no_schema(installed: Installed) -> None:
    roles, run_as = installed
    assert one(roles.reader, "SELECT has_database_privilege(current_database(), 'CREATE')") is False
    schemas = (
        "SELECT string_agg(nspname, ' ' ORDER BY nspname) FROM pg_namespace WHERE nspname ~ '^cua'"
    )
    run_as(roles.reader, "verify")
    assert one(roles.administrator, schemas) == "cua cua_ops"


@pytest.mark.parametrize("installed", [BY_OWNER], indirect=True)
@pytest.mark.parametrize("damage", ["DROP TABLE cua.turn", "DROP SCHEMA cua, cua_ops CASCADE"])
def test_what_the_owner_makes_again_every_role_can_use_again(
    installed: Installed, damage: str
) -> None:
    """Default privileges reach a table that is made again; those of a schema go with it."""
    roles, run_as = installed
    execute(roles.owner, damage)
    run_as(roles.owner, "rebuild")
    if "SCHEMA" in damage:
        execute(roles.owner, roles.grants)
    assert run_as(roles.owner, "verify", "--json").json["equal"]
    run_as(roles.projector, "run", "--once")
    assert run_as(roles.reader, "verify", "--json").json["equal"]
    assert one(roles.reader, "SELECT count(*) FROM cua.turn") == 5


def test_a_role_that_lacks_a_privilege_is_sent_to_the_page(
    installed: Installed, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    roles, _ = installed
    monkeypatch.setenv("DATABASE_URL", roles.reader)
    code, _, err = call("run", "--once")
    assert code == 1
    assert "permission denied" in err
    assert "docs/roles.md" in err
    named = re.findall(r"\bcua(?:_ops)?\.\w+", err)
    assert all(one(roles.owner, f"SELECT to_regclass('{name}')") for name in named)


def test_every_role_of_the_page_is_in_its_table() -> None:
    page = PAGE.read_text()
    listed = re.findall(r"^\| \w+, `(\w+)`", page, re.MULTILINE)
    assert re.findall(r"CREATE ROLE (\w+)", page) == listed
