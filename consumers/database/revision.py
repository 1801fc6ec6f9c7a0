"""Which revision of the tables a database is at, compared with those that this code has."""

from enum import Enum, auto
from typing import NamedTuple

from consumers.database.connection import Cursor, connected
from consumers.database.known_revisions import known_revisions
from consumers.errors import MismatchError
from consumers.tables import (
    FIRST_PROJECTION_VERSION,
    OPS_SCHEMA,
    OUTDATED,
    PROJECTION_VERSION,
    SCHEMA,
)

DEVELOPMENT = frozenset(f"{number:04}" for number in range(2, 12))
"""Revisions of versions before 0.1.0; the next revision's number is 0012."""


class Age(Enum):
    """How a database's revision compares with the code's."""

    EMPTY = auto()
    """It has no tables of ours."""
    OLDER = auto()
    CURRENT = auto()
    NEWER = auto()
    """A revision that this code does not have."""
    DEVELOPMENT = auto()
    """Of a version before 0.1.0."""
    DAMAGED = auto()
    """It has tables of ours, but does not say which revision they are."""


class Revision(NamedTuple):
    """The recorded revision of a database."""

    age: Age
    found: tuple[str, ...]
    """The rows of `alembic_version`."""
    newest: str
    """The newest revision that this code has."""
    projection_version: int | None = None
    """Of the code that filled the tables; None when they do not say."""

    def require_current(self) -> None:
        """Raise unless the database is at this code's revision, with the command that helps.

        MismatchError, also of an empty database.
        """
        self.refuse()
        if self.age is Age.CURRENT:
            return
        found = "has no tables of ours" if self.age is Age.EMPTY else f"is at {self._named()}"
        message = (
            f"the database {found}, and this version needs revision {self.newest}; run"
            " `cua-project migrate`"
        )
        raise MismatchError(message)

    def refuse(self) -> None:
        """MismatchError, with what helps, of a newer, a development's or a damaged database.

        The code that filled the tables counts too, at whatever revision they are.
        """
        if self.age is Age.NEWER:
            message = (
                f"the database is at {self._named()}, which this version of cua-train does not"
                f" have (its newest is {self.newest}); nothing was changed. Install the newer"
                " cua-train that migrated it"
            )
            raise MismatchError(message)
        if (self.projection_version or 0) > PROJECTION_VERSION:
            message = (
                "the tables were filled by a newer version of cua-train (projection version"
                f" {self.projection_version}, this one's is {PROJECTION_VERSION}); nothing was"
                " changed. Install that version"
            )
            raise MismatchError(message)
        if problem := self._unreadable():
            message = f"{problem}; {make_again()}"
            raise MismatchError(message)

    def _unreadable(self) -> str | None:
        """Why no version reads the tables, in words; None: this one may."""
        version = self.projection_version
        if self.age is Age.DEVELOPMENT:
            return f"the database is at {self._named()}, of a version of cua-train before 0.1.0"
        if version is not None and OUTDATED < version < FIRST_PROJECTION_VERSION:
            return (
                "the tables were filled by a version of cua-train before 0.1.0 (projection version"
                f" {version})"
            )
        if self.age is not Age.DAMAGED:
            return None
        if self.found:
            return f"{OPS_SCHEMA}.alembic_version has several revisions ({', '.join(self.found)})"
        return f"the database has tables of ours, but no revision in {OPS_SCHEMA}.alembic_version"

    def _named(self) -> str:
        return f"revision {', '.join(self.found)}"


def make_again() -> str:
    """What helps where tables are not mended in place."""
    from schemas.programs import program

    ours = program("cua-project")
    return (
        f"nothing was changed. Run `{ours} psql -c 'DROP SCHEMA IF EXISTS {SCHEMA}, {OPS_SCHEMA}"
        f" CASCADE'`, then `{ours} migrate`: `{ours} run` fills the new tables from the log"
    )


def look(url: str) -> Revision:
    """The database's revision, read without a lock. UnreachableError."""
    with connected(url, "check") as connection, connection, connection.cursor() as cursor:
        return inspect_revision(cursor)


def inspect_revision(cursor: Cursor) -> Revision:
    """As `look`."""
    known = known_revisions()
    return read_revision(cursor, known, known[-1])


def read_revision(cursor: Cursor, known: tuple[str, ...], newest: str) -> Revision:
    """The database's revision; `known` are all that this code has."""
    found = read_found(cursor)
    if any(item not in known and item not in DEVELOPMENT for item in found):
        age = Age.NEWER
    elif any(item in DEVELOPMENT for item in found):
        age = Age.DEVELOPMENT
    elif len(found) > 1:
        age = Age.DAMAGED
    elif found:
        age = Age.CURRENT if found[0] == newest else Age.OLDER
    else:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid ="
            " relnamespace WHERE relkind = 'r' AND (nspname = %s AND relname IN ('training',"
            " 'projection', 'reader_position', 'rollout') OR nspname = %s AND relname ="
            " 'lease'))",
            (SCHEMA, OPS_SCHEMA),
        )
        row = cursor.fetchone()
        age = Age.DAMAGED if row is not None and row[0] else Age.EMPTY
    return Revision(age, found, newest, _read_projection_version(cursor))


def read_found(cursor: Cursor) -> tuple[str, ...]:
    """The rows of `alembic_version`; none without that table or its column."""
    cursor.execute(
        "SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname ="
        " 'version_num')",
        (f"{OPS_SCHEMA}.alembic_version",),
    )
    row = cursor.fetchone()
    if row is None or not row[0]:
        return ()
    cursor.execute(f"SELECT version_num FROM {OPS_SCHEMA}.alembic_version ORDER BY 1")
    return tuple(str(row[0]) for row in cursor.fetchall())


def _read_projection_version(cursor: Cursor) -> int | None:
    cursor.execute(
        "SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname ="
        " 'version' AND atttypid = 'integer'::regtype)",
        (f"{SCHEMA}.projection",),
    )
    row = cursor.fetchone()
    if row is None or not row[0]:
        return None
    cursor.execute(f"SELECT max(version) FROM {SCHEMA}.projection")
    row = cursor.fetchone()
    return None if row is None else row[0]
