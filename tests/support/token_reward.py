"""Rewards that even an untrained policy's episodes differ in."""

from zlib import crc32

from producer.rewards import Outcome


def by_tokens(outcome: Outcome) -> float:
    """A tenth for each completion token."""
    return outcome.num_tokens / 10


def by_task(outcome: Outcome) -> float:
    """-1, 0 or 1, by the task's id."""
    return crc32(outcome.task_id.encode()) % 3 - 1
