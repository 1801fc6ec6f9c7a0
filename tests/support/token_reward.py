"""A reward that even an untrained policy's episodes differ in."""

from producer.rewards import Outcome


def by_tokens(outcome: Outcome) -> float:
    """A tenth for each completion token."""
    return outcome.num_tokens / 10
