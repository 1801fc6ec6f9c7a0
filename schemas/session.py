"""The event of a session with a database (DB Bench); stream of its rollout."""

from typing import ClassVar, Literal

from schemas.base import Count, Id, Payload, UtcTime

SessionStatus = Literal[
    "completed",
    "task_limit_reached",
    "agent_validation_failed",
    "agent_context_limit",
    "task_environment_error",
]
"""How a session ended: the agent answered; it had no round left; it wrote neither an operation nor
an answer; its prompt was full; the database failed."""
Outcome = Literal["correct", "incorrect", "unknown"]


class SessionEnded(Payload):
    """A session ended, and what it came to.

    These are two things: a table can be right although the agent never answered.
    """

    TYPE: ClassVar[str] = "cua.session.ended"

    entry_id: Id
    """Row id of the entry."""
    session_status: SessionStatus
    """How it ended."""
    outcome: Outcome
    """What it came to; `unknown`: it could not be judged."""
    answer: str | None
    """The final answer as the agent wrote it; None: there was none."""
    table_hash: str | None
    """Hash of the table's state at the end; None: the entry is judged by its answer."""
    num_rounds: Count
    """Completions of the agent."""
    num_operations: Count
    """SQL texts that were executed, failed ones included."""
    num_sql_errors: Count
    """Of those, refused by the database or its limits."""
    num_replayed: Count = 0
    """Past sessions shown in the prompt."""
    error_message: str | None = None
    """Why it could not be judged, or what was wrong with the last completion; None: nothing."""
    ended_at: UtcTime
    """When it had been judged."""
