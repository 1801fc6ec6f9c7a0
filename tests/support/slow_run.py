"""A run with slow devices and slow updates: `python -m tests.support.slow_run SETTINGS OPTIONS`."""

import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

import producer.training.run as run_module
from producer.algorithms.settings import UpdateSettings
from producer.config import RunConfig, read_config
from producer.policy.learner import Learner, LendingLearner, Trajectory, UpdateResult
from producer.policy.policy import Completion, SampleRequest
from producer.rollouts.engine import EnvironmentFactory
from producer.training.loaded import Loaded, load
from schemas.installation import Installation
from tests.support.slow_device import SlowDevice

LIMIT_S = 60.0
NUM_PARTS = 20
"""Of an update; between two the policy may be sampled from."""


class Slow:
    """Makes the policies and devices of this process slow while the context is open.

    Each latency is uniform in [0, 2 x its mean]; `update_s` is what an update takes besides, and
    longer while not `until`.
    """

    def __init__(
        self,
        *,
        opening_s: float = 0.0,
        acting_s: float = 0.0,
        update_s: float = 0.0,
        seed: int = 0,
        until: Callable[[], bool] = lambda: True,
    ) -> None:
        self._random = random.Random(seed)
        self._means = {"opening": opening_s, "acting": acting_s}
        self._update_s, self._until = update_s, until
        self._load = load
        self._lock = threading.Lock()
        self._calls = self.most_calls_at_once = 0

    def __enter__(self) -> Self:
        vars(run_module)["load"] = self._slow_load
        return self

    def __exit__(self, *_: object) -> None:
        vars(run_module)["load"] = self._load

    def _slow_load(
        self, config: RunConfig, installation: Installation, stop: threading.Event | None
    ) -> Loaded:
        loaded = self._load(config, installation, stop)
        assert loaded.policy is not None
        learner, make_environment = loaded.policy
        self._slow_down(learner)
        return loaded._replace(policy=(learner, self._slow_factory(make_environment)))

    def _slow_factory(self, make_environment: EnvironmentFactory) -> EnvironmentFactory:
        return lambda plan: SlowDevice(
            make_environment(plan),
            opening=lambda: 2 * self._means["opening"] * self._random.random(),
            acting=lambda: 2 * self._means["acting"] * self._random.random(),
        )

    def _slow_down(self, learner: Learner) -> None:
        update, sample = learner.update, learner.sample
        in_parts = learner.update_in_parts if isinstance(learner, LendingLearner) else None

        def slow_update(
            trajectories: Sequence[Trajectory],
            settings: UpdateSettings,
            lend: Callable[[], None] | None = None,
        ) -> UpdateResult:
            num_parts = 0
            while num_parts < NUM_PARTS or not self._until():
                num_parts += 1
                if lend is not None:
                    lend()
                with self._called():
                    time.sleep(self._update_s / NUM_PARTS)
                assert num_parts * self._update_s / NUM_PARTS < LIMIT_S
            if in_parts is not None:
                return in_parts(trajectories, settings, lend)
            with self._called():
                return update(trajectories, settings)

        def counted_sample(requests: Sequence[SampleRequest]) -> list[Completion]:
            with self._called():
                return sample(requests)

        vars(learner).update(update=slow_update, update_in_parts=slow_update, sample=counted_sample)

    @contextmanager
    def _called(self) -> Iterator[None]:
        with self._lock:
            self._calls += 1
            self.most_calls_at_once = max(self.most_calls_at_once, self._calls)
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1


if __name__ == "__main__":
    with Slow(**json.loads(sys.argv[2])):
        run_module.run(read_config(json.loads(sys.argv[1])))
