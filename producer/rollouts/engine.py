"""Runs many episodes at once and has the policy sample for all that are ready as one batch.

It knows no groups: plans go in, results come out in the order in which episodes end. A retry is a
plan that the caller submits.
"""

import math
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from datetime import datetime
from queue import Empty, SimpleQueue
from time import monotonic

from producer.emit import Emitter
from producer.environments.environment import Environment
from producer.environments.worker import JobDone
from producer.policy.policy import Policy
from producer.rollouts.episode import Episode, EpisodeSettings
from producer.rollouts.plan import RolloutPlan, RolloutResult
from producer.rollouts.requests import Sampled
from producer.rollouts.running import RunningEpisode

BATCH_WAIT_S = 0.05
"""How long the first rollout that is ready waits for others to join its batch: many times a
simulated device's answer, little beside a real one's."""

EnvironmentFactory = Callable[[RolloutPlan], Environment]


class RolloutEngine:
    """The rollout engine.

    Guarantees: at most `max_concurrent` environments exist, hung ones apart; every plan yields one
    result; a batch has a fixed order, whichever environment answers first; when `run` is closed or
    interrupted, episodes under way are recorded as cancelled. Not thread-safe.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        make_environment: EnvironmentFactory,
        settings: EpisodeSettings,
        max_concurrent: int,
        emitter: Emitter,
        clock: Callable[[], datetime],
        on_begin: Callable[[RolloutPlan], None],
        check_stop: Callable[[], None],
    ) -> None:
        """`on_begin` is called before a plan's first event; `check_stop` raises to stop the run."""
        self._check_stop = check_stop
        self._on_begin = on_begin
        self._policy = policy
        self._make_environment = make_environment
        self._settings = settings
        self._max_concurrent = max_concurrent
        self._emitter = emitter
        self._clock = clock
        self._pending: deque[RolloutPlan] = deque()
        self._active: set[RunningEpisode] = set()
        self._done: SimpleQueue[JobDone[RunningEpisode]] = SimpleQueue()

    def submit(self, plan: RolloutPlan, *, first: bool = False) -> None:
        """Queue a plan; `first`: before the others (a retry that a group waits for)."""
        self._pending.appendleft(plan) if first else self._pending.append(plan)

    def run(self) -> Generator[RolloutResult, None, None]:
        """Results as they come, until no plan is left (plans may be submitted between results)."""
        try:
            while self._pending or self._active:
                self._check_stop()
                self._refill()
                self._await_environments()
                yield from self._harvest()
                self._sample()
        finally:
            with ExitStack() as every:
                for running in self._active:
                    every.callback(self._policy.forget, running.plan.id)
                    every.callback(running.cancel)
            self._active.clear()
            self._pending.clear()

    def _refill(self) -> None:
        while self._pending and len(self._active) < self._max_concurrent:
            plan = self._pending.popleft()
            environment = self._make_environment(plan)
            episode = Episode(
                plan,
                environment,
                policy_name=self._policy.name,
                policy_version=self._policy.version,
                settings=self._settings,
                emitter=self._emitter,
                clock=self._clock,
            )
            running = RunningEpisode(
                episode, environment, self._done, max_answer_s=self._settings.max_turn_time_s
            )
            self._active.add(running)
            self._on_begin(plan)
            running.begin()

    def _await_environments(self) -> None:
        """Until all have answered, or the first rollout that is ready has waited long enough."""
        waiting = {running for running in self._active if running.waits_for_environment}
        batch_until_s = monotonic() + BATCH_WAIT_S if len(waiting) < len(self._active) else math.inf
        while waiting:
            until_s = min(batch_until_s, *(running.deadline_s for running in waiting))
            timeout_s = max(0.0, min(until_s - monotonic(), threading.TIMEOUT_MAX))
            try:
                job = self._done.get(timeout=timeout_s)
            except Empty:
                now_s = monotonic()
                for running in [running for running in waiting if running.deadline_s <= now_s]:
                    running.give_up()
                    waiting.discard(running)
                if now_s >= batch_until_s or len(waiting) < len(self._active):
                    return
                continue
            job.owner.on_job(job)
            if job.owner in waiting and not job.owner.waits_for_environment:
                waiting.discard(job.owner)
                batch_until_s = min(batch_until_s, monotonic() + BATCH_WAIT_S)

    def _harvest(self) -> Iterator[RolloutResult]:
        for running in [running for running in self._active if running.result is not None]:
            self._active.discard(running)
            self._policy.forget(running.plan.id)
            if running.result is not None:
                yield running.result

    def _sample(self) -> None:
        ready = [
            (running, running.sample.request)
            for running in sorted(self._active, key=_place)
            if running.sample is not None
        ]
        if not ready:
            return
        started_at, started_s = self._clock(), monotonic()
        completions = self._policy.sample([request for _, request in ready])
        seconds = monotonic() - started_s
        for (running, _), completion in zip(ready, completions, strict=True):
            running.answer(Sampled(completion, started_at, started_s, seconds))


def _place(running: RunningEpisode) -> tuple[int, int, int]:
    """Orders a batch."""
    plan = running.plan
    return plan.group_num, plan.env_index, plan.attempt
