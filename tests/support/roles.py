"""A database with the roles of docs/roles.md, by the page's own SQL."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import make_url

from consumers.database.migrate import migrate
from tests.support.postgres import PostgresServer, execute

PAGE = Path(__file__).parents[2] / "docs/roles.md"
BLOCK = re.compile(r"```sql ?([a-z-]*)\n(.*?)```", re.DOTALL)
ROLES = ("cua_owner", "cua_projector", "cua_reader")
PASSWORD = "secret"  # noqa: S105  # a server of the tests


OWNER = "cua_plain_owner"
"""Owns the tables of `owners_url`."""


def url_of(url: str, role: str) -> str:
    """The same database, as another role."""
    return make_url(url).set(username=role, password=PASSWORD).render_as_string(hide_password=False)


class Roles(NamedTuple):
    """The URLs of one database, by role, and what the page has the owner run."""

    administrator: str
    owner: str
    projector: str
    reader: str
    grants: str


@contextmanager
def database_with_roles(postgres: PostgresServer, schemas_by: str) -> Iterator[Roles]:
    """A new database. `schemas_by`: the page's block that says who makes the schemas."""
    database = postgres.create()
    administrator = postgres.url(database)
    names = {role: f"{role}_{database}" for role in ROLES}
    text = re.sub(
        "|".join(["training_db", *ROLES]),
        lambda found: (names | {"training_db": database})[found[0]],
        PAGE.read_text(),
    )
    (_, roles), *choices, (_, grants) = BLOCK.findall(text)
    execute(administrator, roles + dict(choices)[schemas_by])
    for name in names.values():
        execute(administrator, f"ALTER ROLE {name} PASSWORD '{PASSWORD}'")
    owner, projector, reader = (url_of(administrator, names[role]) for role in ROLES)
    try:
        yield Roles(administrator, owner, projector, reader, grants)
    finally:
        postgres.drop(database)
        execute(postgres.url(), f"DROP ROLE {', '.join(names.values())}")


@pytest.fixture(scope="session")
def owners_template(postgres: PostgresServer) -> str:
    """Name of a database at the newest revision that `cua_plain_owner` migrated, no superuser."""
    name = postgres.create()
    execute(postgres.url(name), f"CREATE ROLE {OWNER} LOGIN PASSWORD '{PASSWORD}'")
    execute(postgres.url(name), f"GRANT CREATE ON DATABASE {name} TO {OWNER}")
    migrate(url_of(postgres.url(name), OWNER))
    return name


@pytest.fixture
def owners_url(postgres: PostgresServer, owners_template: str) -> Iterator[str]:
    """A database of this test's own, as its tables' owner sees it."""
    name = postgres.create(owners_template)
    execute(postgres.url(name), f"GRANT CREATE ON DATABASE {name} TO {OWNER}")
    yield url_of(postgres.url(name), OWNER)
    postgres.drop(name)
