"""An assignment: one rollout for a worker to run, as JSON in a Kafka topic."""

from dataclasses import replace
from typing import Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, JsonValue

from producer.policy.policy import PublishedPolicy
from producer.rollouts.plan import RolloutPlan

TOPIC: Final = "assignments"
"""Topic name, appended to the installation's topic prefix."""
GROUP: Final = "workers"
"""Name of the consumer group, appended to the topic prefix."""
NUM_PARTITIONS: Final = 48
"""Largest number of workers that can get rollouts. Divisible by 2, 3, 4, 6 and 8, so that these
numbers of workers get equal shares."""


class Assignment(BaseModel):
    """Everything a worker needs for one rollout, except API keys and the user's files."""

    model_config = ConfigDict(frozen=True)

    training_id: UUID
    config: dict[str, JsonValue]
    """The training's configuration, as recorded in its first event."""
    plan: RolloutPlan
    policy_name: str
    policy_version: int
    published: PublishedPolicy | None
    """The policy on the servers; None for a scripted policy, which the worker opens itself."""
    since: dict[str, int]
    """`topic/partition` -> offset at or before the rollout's first record."""
    blobs: str
    """URL of the trainer's blob store, without secrets."""
    may_be_copy: bool = False
    """Whether Kafka may already have stored the assignment without confirming it to the trainer."""

    @property
    def value(self) -> bytes:
        """The Kafka record's value."""
        return self.model_dump_json().encode()


def without_turns(plan: RolloutPlan) -> RolloutPlan:
    """The plan as sent, without recorded turns: a worker replays none."""
    return replace(plan, recorded=())
