"""An episode that an earlier process finished, in the batches of a process that continues it."""

from collections.abc import Sequence

from producer.policy.policy import Turn
from producer.rollouts.plan import RolloutPlan
from producer.rollouts.requests import Sample, Sampled, sample_request


class FinishedEpisode:
    """Has its turns sampled once more and emits nothing.

    A policy's last bits depend on who shares a batch. With the finished episodes in their places
    those that were under way see the batches that they would have seen without the kill.
    """

    def __init__(self, plan: RolloutPlan, turns: Sequence[Turn], max_tokens: int) -> None:
        self.plan = plan
        self._turns = turns
        self._max_tokens = max_tokens
        self._history: list[Turn] = []

    @property
    def is_over(self) -> bool:
        """Whether it has left the batches."""
        return len(self._history) == len(self._turns)

    @property
    def sample(self) -> Sample | None:
        """Its next turn."""
        if self.is_over:
            return None
        turn = self._turns[len(self._history)]
        request = sample_request(self.plan, self._history, turn.observation, self._max_tokens)
        return Sample(request, turn.completion)

    def answer(self, answer: Sampled) -> None:
        """Go on to the next turn."""
        observation = self._turns[len(self._history)].observation
        self._history.append(Turn(observation, answer.completion))

    def cancel(self) -> None:
        """Nothing is left to end."""

    def wait_closed(self, until_s: float) -> None:
        """It has no device."""
