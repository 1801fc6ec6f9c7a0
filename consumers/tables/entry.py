"""Entries of data sets: what a task about a database is made of, and its gold.

Content-addressed like tasks, so that any training may state them: every column but the times
follows from the id.
"""

from uuid import UUID

from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import Mapped

from consumers.tables.base import Base, Document, Key, OptDocument, OptString, String, Time


class Entry(Base):
    """One entry of a data set, as one task uses it; other content is another row."""

    __tablename__ = "entry"
    __table_args__ = (UniqueConstraint("task_id", "content_hash"),)

    id: Mapped[Key]
    """Row id: a UUIDv5 of task_id and content_hash."""
    task_id: Mapped[UUID]
    """Row id of the task."""
    content_hash: Mapped[String]
    """Hex sha256 of the entry's content."""
    kind: Mapped[String]
    """Which agent it is for: dbbench, text_to_sql."""
    entry_id: Mapped[String]
    """Its name in the data set."""
    instruction: Mapped[String]
    """The question or order, as in the data set."""
    table_name: Mapped[OptString]
    """dbbench: name of the only table; NULL: `database` names a file."""
    columns_json: Mapped[OptDocument]
    """dbbench: list of the table's columns with `name` and `type`."""
    rows_json: Mapped[OptDocument]
    """dbbench: list of the rows that a session begins with, each a list of values."""
    database: Mapped[OptString]
    """text_to_sql: the data set's name of the database (`db_id`)."""
    database_sha256: Mapped[OptString]
    """text_to_sql: of the database's file, hex."""
    evidence: Mapped[OptString]
    """text_to_sql: the hint given with the question; NULL: none."""
    answer_direct_json: Mapped[OptDocument]
    """dbbench: list of the rows that answer a SELECT; NULL: the table's state is the answer."""
    answer_md5: Mapped[OptString]
    """dbbench: hash of the table's state after INSERT, UPDATE or DELETE; NULL: rows are."""
    sql: Mapped[OptString]
    """The gold; NULL: unknown."""
    skills: Mapped[Document]
    """List of what the gold needs, sorted."""
    difficulty: Mapped[OptString]
    """Difficulty stated by the data set; NULL: unrated."""
    created_at: Mapped[Time]
    """When any training first stated it."""
    updated_at: Mapped[Time]
    """When any training last stated it."""
