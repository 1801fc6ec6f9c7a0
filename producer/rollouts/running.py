"""A running episode: its generator, and the thread that its environment runs on."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from time import monotonic
from typing import cast

from producer.environments.environment import Environment
from producer.environments.worker import EnvironmentWorker, JobDone
from producer.policy.policy import Turn
from producer.rollouts.episode import Episode
from producer.rollouts.plan import RolloutPlan, RolloutResult
from producer.rollouts.requests import (
    ApplyRubric,
    Close,
    EpisodeAnswer,
    EpisodeFailedError,
    Request,
    Sample,
    Sampled,
    sample_request,
)
from producer.validators.judges import JudgeFailedError


class RunningEpisode:
    """Performs an episode's requests, except `Sample`, which is left to the engine.

    Guarantees: never blocks. The environment is closed exactly once, however the episode ends (if
    it hangs, once it answers again, if ever), and its end is recorded only after that. `cancel` is
    idempotent. Not thread-safe.
    """

    def __init__(
        self,
        episode: Episode,
        environment: Environment,
        done: "SimpleQueue[JobDone[RunningEpisode]]",
        *,
        max_answer_s: float,
    ) -> None:
        """`done` receives the environment's answers; after `max_answer_s` without one it hangs."""
        self.plan = episode.plan
        self.is_simulated = environment.is_simulated
        self.sample: Sample | None = None
        """The pending request to the policy, if any."""
        self.deadline_s = math.inf
        """Monotonic time at which the environment counts as hung."""
        self.result: RolloutResult | None = None
        """Set when the episode is over."""
        self._steps = episode.run()
        self._environment = environment
        self._max_answer_s = max_answer_s
        self._worker = EnvironmentWorker(self, done, name=episode.plan.name)
        self._device = episode.device
        self._is_close_submitted = self._is_closed = self._has_ended = False

    @property
    def waits_for_environment(self) -> bool:
        """Whether its next step depends on the environment's thread."""
        return self.sample is None and self.result is None

    @property
    def is_over(self) -> bool:
        """Whether the episode has a result."""
        return self.result is not None

    def begin(self) -> None:
        """Run to the first request."""
        self._advance(lambda: next(self._steps))

    def answer(self, answer: EpisodeAnswer) -> None:
        """Continue with the answer to the pending request."""
        self._advance(lambda: self._steps.send(answer))

    def on_job(self, job: "JobDone[RunningEpisode]") -> None:
        """Continue with the result of a request to the environment; ignored if the episode is over.

        Re-raises what the job raised if that is not an Exception (KeyboardInterrupt).
        """
        error = job.error
        if self.result is not None:
            return
        if error is None:
            # `perform` of the request that the generator yielded has returned this value.
            self.answer(cast("EpisodeAnswer", job.value))
        elif isinstance(error, JudgeFailedError):
            self._throw(EpisodeFailedError("validator", str(error)))
        elif isinstance(error, Exception):
            self._throw(EpisodeFailedError("environment", f"{type(error).__name__}: {error}"))
        else:
            raise error

    def give_up(self) -> None:
        """End the episode as failed because its environment hangs."""
        message = f"the environment did not answer within {self._max_answer_s:g} s"
        self._throw(EpisodeFailedError("environment_timeout", message, is_hung=True))

    def fail_policy(self, reason: str) -> None:
        """End the episode as failed because the policy gave no completion."""
        self._throw(EpisodeFailedError("policy", reason))

    def cancel(self) -> None:
        """End the episode as cancelled, unless it is over."""
        try:
            self._steps.close()
        finally:
            self._end()

    def _throw(self, failure: EpisodeFailedError) -> None:
        self._advance(lambda: self._steps.throw(failure))

    def _advance(self, step: Callable[[], Request]) -> None:
        self.sample, self.deadline_s = None, math.inf
        try:
            request = step()
        except StopIteration as end:
            self.result = end.value
            self._end()
            return
        if isinstance(request, Sample):
            self.sample = request
            return
        self._is_close_submitted = isinstance(request, Close)
        self.deadline_s = monotonic() + self._limit_s(request)
        self._worker.submit(
            self._close
            if isinstance(request, Close)
            else partial(request.perform, self._environment)
        )

    def _limit_s(self, request: Request) -> float:
        # A user's reward has its own time limit, and a network that scores steps serves one episode
        # at a time, so waiting for them does not count against the device.
        return math.inf if isinstance(request, ApplyRubric) else self._max_answer_s

    def wait_closed(self, until_s: float) -> None:
        """Wait until monotonic time `until_s` for the device to close, or record it as leaked."""
        self._worker.join(max(0.0, until_s - monotonic()))
        self._device.leak("its run was stopped, and it did not answer")

    def _close(self) -> None:
        self._environment.close()
        self._is_closed = True

    def _record_released(self) -> None:
        if self._is_closed:
            self._device.released()

    def _end(self) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        if not self._is_close_submitted:
            self._worker.submit(self._close)
        self._worker.submit(self._record_released)
        self._worker.abandon()


class FinishedEpisode:
    """Has its turns sampled again and emits nothing.

    The last bits of a policy's output depend on what shares its batch. With finished episodes in
    their places, the unfinished ones see the same batches as if the process had not been killed.
    """

    def __init__(self, plan: RolloutPlan, turns: Sequence[Turn], max_tokens: int) -> None:
        self.plan = plan
        self._turns = turns
        self._max_tokens = max_tokens
        self._history: list[Turn] = []

    @property
    def is_over(self) -> bool:
        """Whether it takes no further part in batches."""
        return len(self._history) == len(self._turns)

    @property
    def sample(self) -> Sample | None:
        """Its next turn's request."""
        if self.is_over:
            return None
        turn = self._turns[len(self._history)]
        request = sample_request(self.plan, self._history, turn.observation, self._max_tokens)
        return Sample(request, turn.completion)

    def answer(self, answer: Sampled) -> None:
        """Continue with the next turn."""
        observation = self._turns[len(self._history)].observation
        self._history.append(Turn(observation, answer.completion))

    def cancel(self) -> None:
        """No-op: there is nothing to end."""

    def wait_closed(self, until_s: float) -> None:
        """No-op: it has no device."""
