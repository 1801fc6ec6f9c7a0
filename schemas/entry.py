"""The event of a data set's entry: what a task about a database is made of, and its gold."""

import json
from typing import ClassVar, Literal

from pydantic import JsonValue

from schemas.base import Id, Items, Payload, Value
from schemas.ids import content_hash

EntryKind = Literal["dbbench", "text_to_sql"]


class Column(Value):
    """A column of an entry's table."""

    name: str
    """As in the table."""
    type: str
    """As in the data set: INT, TEXT ..."""


class TableInfo(Value):
    """The table that a session begins with."""

    name: str
    """Its name in the database."""
    columns: Items[Column]
    """In the table's order."""
    rows: Items[Items[JsonValue]]
    """Of as many values as there are columns; None: NULL."""


class EntryContent(Value):
    """One entry of a data set, as it was loaded."""

    kind: EntryKind
    """Which agent it is for."""
    entry_id: str
    """Its name in the data set."""
    instruction: str
    """The question or order, as in the data set."""
    table_info: TableInfo | None = None
    """dbbench: the only table; None: `database` names a file."""
    database: str | None = None
    """text_to_sql: the data set's name of the database (`db_id`)."""
    database_sha256: str | None = None
    """text_to_sql: of the database's file, hex."""
    evidence: str | None = None
    """text_to_sql: the hint given with the question; None: none."""
    answer_direct: Items[Items[JsonValue]] | None = None
    """dbbench: the rows that answer a SELECT; None: the table's state is the answer."""
    answer_md5: str | None = None
    """dbbench: hash of the table's state after INSERT, UPDATE or DELETE; None: rows are."""
    sql: str | None = None
    """The gold; None: unknown."""
    skills: Items[str] = ()
    """What the gold needs, sorted."""
    difficulty: str | None = None
    """As in the data set; None: unrated."""


class EntryStated(Payload):
    """An entry that a task is made of. Content-addressed; any training may state it."""

    TYPE: ClassVar[str] = "cua.entry.stated"

    id: Id
    """Row id: hash of `task_id` and `content_hash`."""
    task_id: Id
    """Row id of the task."""
    content_hash: str
    """Hex sha256 of `content` without the fields that have their defaults, in canonical JSON
    (`entry_hash`); the task's definition names it."""
    content: EntryContent
    """The entry."""


def entry_hash(content: EntryContent) -> str:
    """`EntryStated.content_hash` of an entry.

    The same of what was loaded and of what a log gives back (NaN is text there), and of an entry
    that is read by code whose EntryContent has more optional fields.
    """
    return content_hash(json.loads(content.model_dump_json(exclude_defaults=True)))
