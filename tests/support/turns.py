"""Turns of an episode, by what a test cares about."""

from dataclasses import replace

from producer.environments.environment import Observation, Screenshot, TextObservation
from producer.policy.policy import Completion, SampledTokens, Turn


def past_turn(screenshot: Screenshot | None, text: str, tokens: SampledTokens | None) -> Turn:
    """An earlier turn of an episode; None: the environment has no screen, a scripted policy."""
    return Turn(screenshot or TextObservation(None), Completion(text, (), tokens))


def trained_turn(screenshot: Screenshot | None, tokens: SampledTokens) -> Turn:
    """A turn to train on, whose text does not matter."""
    return past_turn(screenshot, "", tokens)


def recorded_turn(observation: Observation, completion: Completion, policy_version: int) -> Turn:
    """A turn that an earlier process recorded."""
    return Turn(observation, replace(completion, policy_version=policy_version))
