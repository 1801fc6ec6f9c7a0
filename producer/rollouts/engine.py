"""Runs many episodes at once; the policy samples for all that are ready as one batch.

Simulated devices run in lockstep: before a batch is sampled, every running episode has its answer
and free places are filled in the order of the plans. The batches, whose sizes change the last bits
of a log-prob, therefore depend only on the plans. Real devices answer differently every time, and
waiting for the slowest would cost most of the time, so their batches wait only `BATCH_WAIT_S`.

The engine knows no groups: it takes plans and yields results, those of one round in the order of
their places. A retry is a plan that the caller submits.
"""

import logging
import math
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from queue import Empty, SimpleQueue
from time import monotonic
from uuid import UUID

from producer.emit import Emitter
from producer.environments.environment import Environment
from producer.environments.worker import JobDone
from producer.policy.policy import Completion, Policy, SampleRequest, Turn
from producer.rollouts.devices import LeftDevices
from producer.rollouts.episode import Episode, EpisodeSettings
from producer.rollouts.plan import RolloutPlan, RolloutResult
from producer.rollouts.requests import Sampled
from producer.rollouts.running import FinishedEpisode, RunningEpisode

logger = logging.getLogger(__name__)

BATCH_WAIT_S = 0.05
"""How long the first ready rollout waits for those on real devices to join its batch."""

CLOSE_GRACE_S = 5.0
"""When a run is stopped: how long its devices have to close before they count as leaked."""

STOP_CHECK_S = 1.0
"""Longest time until a stop request is noticed, whatever the devices do."""

EnvironmentFactory = Callable[[RolloutPlan], Environment]


class RolloutEngine:
    """Runs plans and yields their results. Not thread-safe.

    Guarantees: at most `max_concurrent` environments exist, not counting hung ones. Every plan
    yields one result. On simulated devices, batches and the order of results depend on the plans
    and on the devices' answers, never on timing. When `run` is closed or interrupted, running
    episodes are recorded as cancelled and their devices closed, or recorded as leaked after
    `CLOSE_GRACE_S`.
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
        left_devices: LeftDevices | None = None,
    ) -> None:
        """`on_begin` is called before a plan's first event; `check_stop` raises to stop the run."""
        self._left_devices = left_devices or LeftDevices()
        self._check_stop = check_stop
        self._on_begin = on_begin
        self._policy = policy
        self._make_environment = make_environment
        self._settings = settings
        self._max_concurrent = max_concurrent
        self._emitter = emitter
        self._clock = clock
        self._pending: deque[RolloutPlan | FinishedEpisode] = deque()
        self._active: list[RunningEpisode | FinishedEpisode] = []
        self._made: dict[UUID, Environment] = {}
        """Environments created before their plan's turn came."""
        self._has_drifted = False
        self._done: SimpleQueue[JobDone[RunningEpisode]] = SimpleQueue()

    def submit(self, plan: RolloutPlan, *, first: bool = False) -> None:
        """Queue a plan; `first`: before the others (a retry that a group waits for)."""
        self._pending.appendleft(plan) if first else self._pending.append(plan)

    def submit_finished(self, plan: RolloutPlan, turns: Sequence[Turn]) -> None:
        """Queue an episode that an earlier process finished, in the place of its plan.

        It yields no result and emits nothing. It is sampled again only if that reproduces the
        batches, and so the exact bits, of an undisturbed run for the other episodes.
        """
        self._pending.append(FinishedEpisode(plan, turns, self._settings.max_tokens))

    def run(self) -> Generator[RolloutResult, None, None]:
        """Yield results as they arrive until no plan is left; plans may be added meanwhile."""
        try:
            if not self._repeats_batches():
                self._pending = deque(
                    item for item in self._pending if isinstance(item, RolloutPlan)
                )
            while self._pending or self._active:
                self._check_stop()
                self._refill()
                self._await_environments()
                yield from self._harvest()
                self._sample()
        finally:
            with ExitStack() as every:
                until_s = monotonic() + CLOSE_GRACE_S
                for running in self._active:
                    every.callback(self._policy.forget, running.plan.id)
                    every.callback(running.wait_closed, until_s)
                for running in self._active:
                    every.callback(running.cancel)
            self._active.clear()
            self._pending.clear()

    def _repeats_batches(self) -> bool:
        """Whether an undisturbed run's batches can be reproduced, and doing so has a use."""
        first = next((plan for plan in self._pending if isinstance(plan, RolloutPlan)), None)
        if first is None or not self._policy.repeats_batches:
            return False
        environment = self._made[first.id] = self._make_environment(first)
        return environment.is_simulated

    def _refill(self) -> None:
        while self._pending and len(self._active) < self._max_concurrent:
            plan = self._pending.popleft()
            if isinstance(plan, FinishedEpisode):
                self._active.append(plan)
                continue
            environment = self._made.pop(plan.id, None) or self._make_environment(plan)
            episode = Episode(
                plan,
                environment,
                policy_name=self._policy.name,
                policy_version=self._policy.version,
                settings=self._settings,
                emitter=self._emitter,
                clock=self._clock,
                left_devices=self._left_devices,
            )
            running = RunningEpisode(
                episode, environment, self._done, max_answer_s=self._settings.max_turn_time_seconds
            )
            self._active.append(running)
            self._on_begin(plan)
            running.begin()

    def _await_environments(self) -> None:
        """Wait until every simulated device has answered or counts as hung.

        Waits for real devices while nothing else is ready, and `BATCH_WAIT_S` after that.
        """
        waiting = {
            running
            for running in self._active
            if isinstance(running, RunningEpisode) and running.waits_for_environment
        }
        batch_until_s = monotonic() + BATCH_WAIT_S if len(waiting) < len(self._active) else math.inf
        while waiting:
            is_lockstep = any(running.is_simulated for running in waiting)
            if not is_lockstep and monotonic() >= batch_until_s:
                return
            until_s = math.inf if is_lockstep else batch_until_s
            for job in self._next_jobs(waiting, until_s):
                job.owner.on_job(job)
            now_s = monotonic()
            for running in sorted(waiting, key=_place):
                if running.deadline_s <= now_s:
                    running.give_up()
            answered = {running for running in waiting if not running.waits_for_environment}
            if answered:
                waiting -= answered
                batch_until_s = min(batch_until_s, now_s + BATCH_WAIT_S)

    def _next_jobs(
        self, waiting: set[RunningEpisode], until_s: float
    ) -> list[JobDone[RunningEpisode]]:
        """The devices' answers; empty if none arrives before the earliest deadline."""
        deadline_s = min(until_s, *(running.deadline_s for running in waiting))
        while True:
            left_s = max(0.0, deadline_s - monotonic())
            with suppress(Empty):
                return [self._done.get(timeout=min(left_s, STOP_CHECK_S)), *self._answered()]
            if left_s <= STOP_CHECK_S:
                return []
            self._check_stop()

    def _answered(self) -> list[JobDone[RunningEpisode]]:
        jobs = []
        with suppress(Empty):
            while True:
                jobs.append(self._done.get_nowait())
        return jobs

    def _harvest(self) -> Iterator[RolloutResult]:
        for running in sorted(self._active, key=_place):
            if running.is_over:
                self._active.remove(running)
                self._policy.forget(running.plan.id)
            if isinstance(running, RunningEpisode) and running.result is not None:
                yield running.result

    def _sample(self) -> None:
        ready = [
            (running, running.sample)
            for running in sorted(self._active, key=_place)
            if running.sample is not None
        ]
        samples_recorded = self._policy.repeats_batches
        asked = [
            sample.request for _, sample in ready if sample.recorded is None or samples_recorded
        ]
        started_at, started_s = self._clock(), monotonic()
        sampled = dict(
            zip(
                (request.episode for request in asked),
                self._policy.sample(asked) if asked else (),
                strict=True,
            )
        )
        seconds = monotonic() - started_s
        for running, sample in ready:
            completion = sampled.get(running.plan.id)
            if sample.recorded is not None:
                completion = self._recorded(sample.request, sample.recorded, completion)
            failure = None if completion is None else completion.failure
            if failure is not None and isinstance(running, RunningEpisode):
                running.fail_policy(failure)
            elif completion is not None:
                is_replayed = sample.recorded is not None
                running.answer(Sampled(completion, started_at, started_s, seconds, is_replayed))

    def _recorded(
        self, request: SampleRequest, recorded: Completion, sampled: Completion | None
    ) -> Completion:
        """Return the recorded completion; the policy forgets what it sampled if that differs."""
        if sampled is not None and sampled.tokens != recorded.tokens:
            self._policy.forget(request.episode)
            if not self._has_drifted:
                self._has_drifted = True
                logger.warning(
                    "recorded turns have other bits here than where they were sampled (another"
                    " processor, other settings, or a device that failed): they are kept, and what"
                    " follows them may differ from an undisturbed run in the last bits"
                )
        return recorded


def _place(running: RunningEpisode | FinishedEpisode) -> tuple[int, int, int]:
    """Sort key that orders a batch."""
    plan = running.plan
    return plan.group_num, plan.env_index, plan.attempt
