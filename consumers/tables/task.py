"""Tasks and validators: content-addressed, so that any training may define them.

The only rows that several streams share.

Every column but the times follows from the id. The times merge so that no order of arrival matters:
`created_at` is the earliest statement, `updated_at` the latest.
"""

from uuid import UUID

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped, relationship

from consumers.tables.base import Base, Document, Key, Number, OptString, String, Time


class Task(Base):
    """One definition of a task; another definition under the same `task_id` is another row."""

    __tablename__ = "task"
    __table_args__ = (UniqueConstraint("task_id", "definition_hash"),)

    id: Mapped[Key]
    task_id: Mapped[String]
    definition_hash: Mapped[String]
    name: Mapped[String]
    description: Mapped[String]
    """The instruction that the agent gets."""
    difficulty: Mapped[OptString]
    category: Mapped[OptString]
    max_steps: Mapped[Number]
    validation_type: Mapped[OptString]
    validation_query: Mapped[OptString]
    expected_result: Mapped[OptString]
    tags: Mapped[Document]
    prerequisites: Mapped[Document]
    app_name: Mapped[OptString]
    source_type: Mapped[String]
    created_at: Mapped[Time]
    updated_at: Mapped[Time]

    validators: Mapped[list["Validator"]] = relationship(
        viewonly=True, primaryjoin="Task.id == foreign(Validator.task_id)"
    )


class Validator(Base):
    """How a task's success is checked."""

    __tablename__ = "validator"
    __table_args__ = (Index(None, "task_id"),)

    id: Mapped[Key]
    task_id: Mapped[UUID]
    """Row id of the task."""
    validator_type: Mapped[String]
    validation_query: Mapped[String]
    validation_method: Mapped[String]
    config_json: Mapped[Document]
    created_at: Mapped[Time]
