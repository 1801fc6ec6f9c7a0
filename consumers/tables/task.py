"""Tasks and validators: content-addressed, so that any training may define them.

The only rows that several streams share.

Every column but the times follows from the id.
Statements merge so that no order of arrival matters: `created_at` is the earliest one, `updated_at`
the latest.
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
    """Row id: a UUIDv5 of task_id and definition_hash."""
    task_id: Mapped[String]
    """The task's name: `train_02_enable_wifi`."""
    definition_hash: Mapped[String]
    """Hex sha256 of every field of the definition."""
    name: Mapped[String]
    """Title for people."""
    description: Mapped[String]
    """The instruction that the agent gets."""
    difficulty: Mapped[OptString]
    """easy, medium, hard; NULL: unrated."""
    category: Mapped[OptString]
    """app, settings, navigation, system, input ...; NULL: none."""
    max_steps: Mapped[Number]
    """Turns the agent may take."""
    validation_type: Mapped[OptString]
    """Type of the validator: `shell`, `agent`, `model` or `environment`; NULL: it cannot be
    judged."""
    validation_query: Mapped[OptString]
    """Device query; NULL: no device query judges it."""
    expected_result: Mapped[OptString]
    """The answer that solves it; NULL: no device query judges it."""
    tags: Mapped[Document]
    """List of free labels."""
    prerequisites: Mapped[Document]
    """List of conditions that the device must meet."""
    app_name: Mapped[OptString]
    """The app it is about; NULL: no particular app."""
    source_type: Mapped[String]
    """Where the definition came from: demo_training, demo_eval, file, custom ..."""
    created_at: Mapped[Time]
    """When any training first stated it."""
    updated_at: Mapped[Time]
    """When any training last stated it."""

    validators: Mapped[list["Validator"]] = relationship(
        viewonly=True, primaryjoin="Task.id == foreign(Validator.task_id)"
    )


class Validator(Base):
    """How a task's success is checked."""

    __tablename__ = "validator"
    __table_args__ = (Index(None, "task_id"),)

    id: Mapped[Key]
    """Row id: a UUIDv5 of all other columns but the time."""
    task_id: Mapped[UUID]
    """Row id of the task."""
    validator_type: Mapped[String]
    """`shell`: judged by shell commands on the device; `agent`: by the agent's own report; `model`:
    by another policy behind an endpoint; `environment`: by the environment itself."""
    validation_query: Mapped[String]
    """Device query, or `agent_report`, `model_judge`, `environment`."""
    validation_method: Mapped[String]
    """How the answer is compared: `equals`, `at_least` ..."""
    config_json: Mapped[Document]
    """Expected result, set-up commands, parameters of the query."""
    created_at: Mapped[Time]
    """When any training first stated it."""
