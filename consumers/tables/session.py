"""Sessions of an agent with a database (DB Bench): how each ended, and what it came to."""

from uuid import UUID

from sqlalchemy import Index
from sqlalchemy.orm import Mapped

from consumers.tables.base import Base, Key, Number, OptString, String, Time


class AgentSession(Base):
    """One session: how it ended, and what it came to.

    These are two things: a table can be right although the agent never answered.
    """

    __tablename__ = "session"
    __table_args__ = (Index(None, "entry_id"),)

    id: Mapped[Key]
    """Row id of its rollout."""
    entry_id: Mapped[UUID]
    """Row id of the entry."""
    session_status: Mapped[String]
    """How it ended: completed, task_limit_reached, agent_validation_failed, agent_context_limit,
    task_environment_error."""
    outcome: Mapped[String]
    """What it came to: correct, incorrect; unknown: it could not be judged."""
    answer: Mapped[OptString]
    """The final answer as the agent wrote it; NULL: there was none."""
    table_hash: Mapped[OptString]
    """Hash of the table's state at the end; NULL: the entry is judged by its answer."""
    num_rounds: Mapped[Number]
    """Completions of the agent."""
    num_operations: Mapped[Number]
    """SQL texts that were executed, failed ones included."""
    num_sql_errors: Mapped[Number]
    """How many of those the database or its limits refused."""
    num_replayed: Mapped[Number]
    """Past sessions shown in the prompt."""
    error_message: Mapped[OptString]
    """Why it could not be judged, or what was wrong with the last completion; NULL: nothing."""
    end_time: Mapped[Time]
    """When it had been judged."""
    created_at: Mapped[Time]
    """Time of its event."""
