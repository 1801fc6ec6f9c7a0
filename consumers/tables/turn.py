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
    """From 1."""
    start_time: Mapped[Time]
    """When its completion was asked for."""
    end_time: Mapped[Time]
    """When its actions had been executed."""
    turn_time: Mapped[Real]
    """Seconds."""
    reward: Mapped[Real]
    """Of this turn: 0, the reward of an episode is its rollout's."""
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
    """From 0 within the turn."""
    action_type: Mapped[OptString]
    """click, type, execute_sql ...; NULL when the call could not be parsed."""
    action_json: Mapped[OptDocument]
    """The action as the environment executed it: places in pixels, SQL as `sql`."""
    tool_name: Mapped[String]
    """As the policy wrote it."""
    tool_args: Mapped[Document]
    """As the policy wrote them, before coordinates became pixels."""
    error_type: Mapped[OptString]
    """parse, tool_name, tool_arg, runtime; NULL: none."""
    error_message: Mapped[OptString]
    """NULL: no error."""
    tokens: Mapped[OptString]
    """base64 of little-endian int32."""
    logprobs: Mapped[OptString]
    """base64 of little-endian float32, nats."""
    num_tokens: Mapped[OptNumber]
    """Completion tokens; only of the first action."""
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
    """NULL: it is a screenshot, or the environment had nothing to say."""
    model_input_json: Mapped[OptDocument]
    """Only of screenshot_before, or of text where the environment has no screen: sampling, images
    of the prompt, and the turn that it extends."""
    created_at: Mapped[Time]
    """Time of the turn's event."""
