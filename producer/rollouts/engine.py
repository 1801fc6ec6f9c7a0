"""Runs many rollouts at once and samples for all that wait as one batch.

A place that becomes free is refilled.

It knows nothing of groups: plans go in, results come out in the order in which they end. A retry is
a plan that the caller adds.
"""

import math
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from datetime import datetime
from queue import Empty, SimpleQueue
from time import monotonic

from producer.emit import Emitter
from producer.environments.environment import Environment
from producer.environments.worker import JobDone
from producer.policy.policy import Policy
from producer.rollouts.episode import Episode, EpisodeSettings
from producer.rollouts.plan import RolloutPlan, RolloutResult

BATCH_WAIT_S = 0.05
"""How long the first rollout that is ready waits for others to join its batch: many times a
simulated device's answer, little beside a real one's."""

EnvironmentFactory = Callable[[RolloutPlan], Environment]


class RolloutEngine:
    """The rollout engine.

    Guarantees: at most `max_concurrent` environments exist; every plan yields one result; when
    `run` is closed or interrupted, what is under way is cancelled and said so. Not thread-safe.
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
        self._check_stop = check_stop
        self._on_begin = on_begin
        self._policy = policy
        self._make_environment = make_environment
        self._settings = settings
        self._max_concurrent = max_concurrent
        self._emitter = emitter
        self._clock = clock
        self._pending: deque[RolloutPlan] = deque()
        self._active: set[Episode] = set()
        self._done: SimpleQueue[JobDone[Episode]] = SimpleQueue()

    def submit(self, plan: RolloutPlan, *, first: bool = False) -> None:
        """Run this too; `first`: before the others (a retry that a group waits for)."""
        self._pending.appendleft(plan) if first else self._pending.append(plan)

    def run(self) -> Generator[RolloutResult, None, None]:
        """Results as they come, until nothing is left (plans may be added between results)."""
        try:
            while self._pending or self._active:
                self._check_stop()
                self._refill()
                self._await_jobs()
                yield from self._harvest()
                self._sample()
        finally:
            for rollout in self._active:
                if rollout.phase != "over":
                    rollout.cancel("the run was stopped")
                self._policy.forget(rollout.plan.id)
            self._active.clear()
            self._pending.clear()

    def _refill(self) -> None:
        while self._pending and len(self._active) < self._max_concurrent:
            plan = self._pending.popleft()
            rollout = Episode(
                plan,
                self._make_environment(plan),
                policy_name=self._policy.name,
                policy_version=self._policy.version,
                settings=self._settings,
                emitter=self._emitter,
                clock=self._clock,
                done=self._done,
            )
            self._active.add(rollout)
            self._on_begin(plan)
            rollout.begin()

    def _await_jobs(self) -> None:
        """Take what the environments brought, until all have answered or the first that is ready has waited long enough."""
        waiting = {rollout for rollout in self._active if rollout.phase not in {"deciding", "over"}}
        batch_until_s = monotonic() + BATCH_WAIT_S if len(waiting) < len(self._active) else math.inf
        while waiting:
            until_s = min(batch_until_s, *(rollout.deadline_s for rollout in waiting))
            try:
                job = self._done.get(
                    timeout=max(0.0, min(until_s - monotonic(), threading.TIMEOUT_MAX))
                )
            except Empty:
                now_s = monotonic()
                for rollout in [rollout for rollout in waiting if rollout.deadline_s <= now_s]:
                    rollout.fail(
                        "environment_timeout",
                        f"the device gave no answer for {self._settings.max_turn_time_s:g} s",
                    )
                    waiting.discard(rollout)
                if now_s >= batch_until_s or len(waiting) < len(self._active):
                    return
                continue
            rollout = job.owner
            if rollout.phase == "over":
                continue
            rollout.on_job(job)
            if rollout.phase in {"deciding", "over"}:
                waiting.discard(rollout)
                batch_until_s = min(batch_until_s, monotonic() + BATCH_WAIT_S)

    def _harvest(self) -> Iterator[RolloutResult]:
        for rollout in [rollout for rollout in self._active if rollout.phase == "over"]:
            self._active.discard(rollout)
            self._policy.forget(rollout.plan.id)
            if rollout.result is not None:
                yield rollout.result

    def _sample(self) -> None:
        deciding = [rollout for rollout in self._active if rollout.phase == "deciding"]
        if not deciding:
            return
        # In a fixed order, so that a batch is the same whichever environment answered first.
        deciding.sort(
            key=lambda rollout: (
                rollout.plan.group_num,
                rollout.plan.env_index,
                rollout.plan.attempt,
            )
        )
        completions = self._policy.sample([rollout.request() for rollout in deciding])
        for rollout, completion in zip(deciding, completions, strict=True):
            rollout.on_completion(completion)
