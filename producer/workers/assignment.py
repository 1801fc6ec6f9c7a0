"""An assignment: one rollout for a worker to run, as JSON in a Kafka topic."""

from dataclasses import replace
from typing import Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, JsonValue

from producer.policy.policy import PublishedPolicy
from producer.rollouts.plan import RolloutPlan

TOPIC: Final = "assignments"
"""After the installation's topic prefix."""
GROUP: Final = "workers"
"""Name of the consumer group, after the topic prefix."""
NUM_PARTITIONS: Final = 48
"""The largest number of workers that get rollouts. Divisible by 2, 3, 4, 6 and 8, so that so many
workers get equal shares."""


class Assignment(BaseModel):
    """Everything that a worker needs for one rollout, except API keys and the user's files."""

    model_config = ConfigDict(frozen=True)

    training_id: UUID
    config: dict[str, JsonValue]
    """The training's, as its first event records it."""
    plan: RolloutPlan
    policy_name: str
    policy_version: int
    published: PublishedPolicy | None
    """The policy on the servers; None: a scripted policy, which the worker opens itself."""
    since: dict[str, int]
    """`topic/partition` -> offset at or before the first record of the rollout."""
    blobs: str
    """URL of the trainer's blob store, without secrets."""
    may_be_copy: bool = False
    """Whether Kafka may have taken the assignment before, without an answer to the trainer."""

    @property
    def value(self) -> bytes:
        """The record."""
        return self.model_dump_json().encode()


def without_turns(plan: RolloutPlan) -> RolloutPlan:
    """The plan to send: a worker replays no turns."""
    return replace(plan, recorded=())
