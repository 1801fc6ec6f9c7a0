"""Turns of a rollout with their actions and observations; each turn is one TurnTaken."""

from uuid import UUID

from sqlalchemy import CheckConstraint, UniqueConstraint
from sqlalchemy.orm import Mapped, relationship

from consumers.tables.base import (
    Base,
    Document,
    Key,
    Number,
    OptDocument,
    OptNumber,
    OptString,
    Real,
    String,
    Time,
)


class Turn(Base):
    """One turn of the agent. Prompts stay in the log: they would double the database."""

    __tablename__ = "turn"
    __table_args__ = (UniqueConstraint("rollout_id", "turn"),)

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""
    rollout_id: Mapped[UUID]
    """Row id of the rollout."""
    turn: Mapped[Number]
    """Number of the turn, from 1."""
    start_time: Mapped[Time]
    """When its completion was requested."""
    end_time: Mapped[Time]
    """When its actions had been executed."""
    turn_time: Mapped[Real]
    """Duration in seconds."""
    reward: Mapped[Real]
    """Reward of this turn; 0 in cua-train's trainings, where only `rollout` has a reward."""
    episode_done: Mapped[bool]
    """Whether the episode ended with it."""
    policy_version: Mapped[Number]
    """The version that sampled it."""
    metrics_json: Mapped[Document]
    """Timings in seconds: `sample_s`, `environment_s`."""
    model_response: Mapped[String]
    """The completion as text."""
    stop_reason: Mapped[OptString]
    """stop, length; NULL for a scripted policy."""
    num_tokens: Mapped[OptNumber]
    """Completion tokens."""
    created_at: Mapped[Time]
    """Time of its event."""

    actions: Mapped[list["Action"]] = relationship(
        viewonly=True,
        primaryjoin="Turn.id == foreign(Action.turn_id)",
        order_by="Action.action_index",
    )
    observations: Mapped[list["Obs"]] = relationship(
        viewonly=True, primaryjoin="Turn.id == foreign(Obs.turn_id)", order_by="Obs.obs_type"
    )


class Action(Base):
    """One action of a turn. The first has the completion's tokens, which cannot be divided."""

    __tablename__ = "action"
    __table_args__ = (UniqueConstraint("turn_id", "action_index"),)

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""
    turn_id: Mapped[UUID]
    """Row id of its turn."""
    action_index: Mapped[Number]
    """Index in the turn, from 0."""
    action_type: Mapped[OptString]
    """click, type, execute_sql ...; NULL when the call could not be parsed."""
    action_json: Mapped[OptDocument]
    """The action as the environment executed it: places in pixels, SQL as `sql`."""
    tool_name: Mapped[String]
    """Name of the tool as the policy wrote it."""
    tool_args: Mapped[Document]
    """Arguments as the policy wrote them, before coordinates were converted to pixels."""
    error_type: Mapped[OptString]
    """parse, tool_name, tool_arg, runtime; NULL: none."""
    error_message: Mapped[OptString]
    """Why the action failed; NULL: no error."""
    tokens: Mapped[OptString]
    """Token ids of the completion: base64 of little-endian int32."""
    logprobs: Mapped[OptString]
    """Log-probs of the tokens: base64 of little-endian float32, nats."""
    num_tokens: Mapped[OptNumber]
    """Completion tokens; only in the first action."""
    created_at: Mapped[Time]
    """Time of the turn's event."""


class Obs(Base):
    """One observation of a turn."""

    __tablename__ = "obs"
    __table_args__ = (
        UniqueConstraint("turn_id", "obs_type"),
        CheckConstraint(
            "obs_type IN ('screenshot_before', 'screenshot_after', 'model_response', 'text')",
            name="obs_type",
        ),
    )

    id: Mapped[Key]
    """Row id: a UUIDv5 of the natural key."""
    turn_id: Mapped[UUID]
    """Row id of its turn."""
    obs_type: Mapped[String]
    """screenshot_before, screenshot_after, text, model_response."""
    screenshot_uri: Mapped[OptString]
    """`blob:sha256:<hex>`."""
    text_content: Mapped[OptString]
    """The text; NULL: it is a screenshot, or the environment returned no text."""
    model_input_json: Mapped[OptDocument]
    """Sampling settings, the prompt's images, and the turn whose prompt it extends. Only in
    screenshot_before, or in text if the environment has no screen."""
    created_at: Mapped[Time]
    """Time of the turn's event."""
