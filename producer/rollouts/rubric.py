"""What an episode's last completion is worth beyond its verdict: rewards, and facts to record."""

from collections.abc import Callable
from dataclasses import dataclass

from producer.environments.environment import Environment
from producer.policy.policy import Completion
from producer.rewards import RewardError
from producer.task import Task
from producer.validators.verdict import Verdict
from schemas.completion import StepScore


@dataclass(frozen=True, slots=True)
class StepScores:
    """Scores of a completion's steps."""

    scorer: str
    """Name of the reward model, or of the method."""
    steps: tuple[StepScore, ...]
    """At least one."""


@dataclass(frozen=True, slots=True)
class CompletionReward:
    """The reward of a user's function or manager."""

    value: float
    """Of the whole completion."""
    tokens: tuple[float, ...] = ()
    """Of each of its tokens; empty: only the whole is rewarded."""


@dataclass(frozen=True, slots=True)
class Grade:
    """The result of a rubric."""

    labels: StepScores | None = None
    """Of the steps, by completing their prefixes; None: they are not labelled."""
    scores: StepScores | None = None
    """Of the steps, by a process reward model; None: they are not scored."""
    reward: CompletionReward | RewardError | None = None
    """In place of the outcome's reward; None: that counts. An error fails the attempt."""


NO_GRADE = Grade()

Rubric = Callable[[Environment, Task, Completion, Verdict | None], Grade]
"""Grades an episode's last completion after the verdict; the verdict is None for a task without a
validator. Called from the environments' threads. EnvironmentFailedError where a database fails."""
