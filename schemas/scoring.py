"""Events of scoring a training's rollouts again; stream `scoring/<id>`, one for each time.

The rewards that the training recorded stay as they are.
"""

from typing import ClassVar

from pydantic import JsonValue

from schemas.base import Count, Id, Payload, UtcTime


class ScoringCreated(Payload):
    """Somebody scores the finished rollouts of a training again."""

    TYPE: ClassVar[str] = "cua.scoring.created"

    training_id: Id
    """The training."""
    reward_name: str
    """The reward: a name, or package.module:function."""
    judge: str | None = None
    """Who judged again; None: the recorded verdicts were used."""
    config: dict[str, JsonValue] = {}
    """Everything else that decides the scores: costs, hashes of source code and prompts."""
    total_rollouts: Count
    """Rollouts to score."""


class RolloutScored(Payload):
    """A rollout got its new reward, or none."""

    TYPE: ClassVar[str] = "cua.scoring.rollout_scored"

    rollout_id: Id
    """The rollout."""
    reward: float | None
    """The new reward; None: it could not be scored."""
    success: bool | None
    """The verdict that the reward is of; None: there was none."""
    error_message: str | None = None
    """Why it could not be scored; None: it was."""
    details: dict[str, JsonValue] = {}
    """Evidence of a judge: its model, its reason, the hash of its prompt."""


class ScoringFinished(Payload):
    """Every rollout was scored, or could not be."""

    TYPE: ClassVar[str] = "cua.scoring.finished"

    scored_rollouts: Count
    """Those that got a reward."""
    failed_rollouts: Count
    """Those that could not be scored."""
    reward_mean: float | None
    """Of the new rewards; None: there is none."""
    success_rate: float | None
    """0-1, of the rollouts with a verdict; None: there is none."""
    ended_at: UtcTime
    """When the last one was scored."""
