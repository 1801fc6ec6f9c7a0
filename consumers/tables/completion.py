"""Text-to-SQL completions: what their SQL came to, and what scorers make of their steps."""

from uuid import UUID

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped

from consumers.tables.base import (
    Base,
    Key,
    Number,
    OptNumber,
    OptReal,
    OptString,
    Real,
    String,
    Time,
)


class Completion(Base):
    """One completion, with its SQL and the gold executed."""

    __tablename__ = "completion"
    __table_args__ = (Index(None, "entry_id"),)

    id: Mapped[Key]
    """Row id of its rollout."""
    entry_id: Mapped[UUID]
    """Row id of the entry."""
    sql: Mapped[OptString]
    """The SQL found in the completion; NULL: none."""
    num_steps: Mapped[Number]
    """CTEs and the final query of a completion in CoCTE form; 0: it is in another form."""
    outcome: Mapped[String]
    """correct: rows as the gold's; incorrect: other rows; error: refused by the database or its
    limits; no_sql: nothing to execute; unknown: the gold itself cannot be executed."""
    outcome_reward: Mapped[Real]
    """Reward for the outcome."""
    process_reward: Mapped[OptReal]
    """Mean of its steps' scores; NULL: no model scored them."""
    num_rows: Mapped[OptNumber]
    """Rows of the result; NULL: there was no result."""
    execution_time: Mapped[OptReal]
    """Seconds of the completion's SQL; NULL: it was not executed."""
    error_message: Mapped[OptString]
    """The database's error; NULL: none."""
    executed_at: Mapped[Time]
    """When it had been compared."""
    created_at: Mapped[Time]
    """Time of its event."""


class CompletionScore(Base):
    """One scorer's scores of a whole completion, combined from its steps' scores."""

    __tablename__ = "completion_score"
    __table_args__ = (UniqueConstraint("completion_id", "scorer"),)

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""
    completion_id: Mapped[UUID]
    """Row id of the completion, which is its rollout's."""
    scorer: Mapped[String]
    """The process reward model's name, or `monte_carlo`."""
    num_steps: Mapped[Number]
    """Steps that were scored."""
    product: Mapped[Real]
    """Product of the steps' scores."""
    minimum: Mapped[Real]
    """Lowest score of a step."""
    last: Mapped[Real]
    """Score of the last step."""
    average: Mapped[Real]
    """Mean of the steps' scores."""
    scored_at: Mapped[Time]
    """When it was scored."""
    created_at: Mapped[Time]
    """Time of its event."""


class StepScore(Base):
    """One scorer's score of one step of a completion."""

    __tablename__ = "step_score"
    __table_args__ = (UniqueConstraint("completion_id", "scorer", "step_index"),)

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""
    completion_id: Mapped[UUID]
    """Row id of the completion, which is its rollout's."""
    scorer: Mapped[String]
    """The process reward model's name, or `monte_carlo`."""
    step_index: Mapped[Number]
    """Index in the completion, from 0."""
    text: Mapped[String]
    """The step as written."""
    first_token: Mapped[Number]
    """Index of its first token in the completion."""
    last_token: Mapped[Number]
    """Index after its last."""
    score: Mapped[Real]
    """Probability that the completion is right so far, 0-1."""
    label: Mapped[OptReal]
    """Share of right completions of the prefix, 0-1; NULL: not sampled."""
    created_at: Mapped[Time]
    """Time of its event."""
