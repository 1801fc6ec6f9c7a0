"""`SerialisedLearner`: one thread samples from a learner while another one updates it."""

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from producer.algorithms.settings import UpdateSettings
from producer.policy.learner import (
    Learner,
    LendingLearner,
    Trajectory,
    UpdateResult,
)
from producer.policy.policy import Completion, SampleRequest


class SerialisedLearner:
    """A `Learner` that forwards calls to the wrapped one, one at a time. Thread-safe.

    Each completion carries the version that sampled it. During an update, threads waiting to sample
    may use the wrapped learner one at a time if it is a `LendingLearner`; otherwise they wait until
    the update ends. `version` and `forget` never block. Batches are not reproducible, so
    `repeats_batches` is False.
    """

    repeats_batches = False

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._changed = threading.Condition()
        self._is_used = False
        self._is_lent = False
        """The update is waiting until a sampling thread has finished."""
        self._num_waiting = 0
        """Number of threads waiting to sample."""
        self._forgotten: deque[UUID] = deque()
        """Episodes to forget at the next call, since a running update may read their state."""

    @property
    def name(self) -> str:
        """The wrapped learner's name."""
        return self._learner.name

    @property
    def version(self) -> int:
        """Number of updates so far; one in progress does not count yet."""
        return self._learner.version

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """Return one completion per request, all from one version."""
        with self._changed:
            self._num_waiting += 1
            try:
                self._changed.wait_for(lambda: not self._is_used)
            finally:
                self._num_waiting -= 1
            self._is_used = True
        try:
            self._forget_ended()
            completions = self._learner.sample(requests)
            version = self._learner.version
        finally:
            self._give_back()
        return [replace(completion, policy_version=version) for completion in completions]

    def forget(self, episode: UUID) -> None:
        """Free the episode's state before the next call."""
        self._forgotten.append(episode)

    def update(self, trajectories: Sequence[Trajectory], settings: UpdateSettings) -> UpdateResult:
        """Run one update of the wrapped learner."""
        with self._alone():
            self._forget_ended()
            if isinstance(self._learner, LendingLearner):
                return self._learner.update_in_parts(trajectories, settings, self._lend)
            return self._learner.update(trajectories, settings)

    def save_state(self, folder: Path) -> None:
        """See `Learner.save_state`."""
        with self._alone():
            self._learner.save_state(folder)

    def load_state(self, folder: Path) -> None:
        """See `Learner.load_state`."""
        with self._alone():
            self._learner.load_state(folder)

    def save_checkpoint(self, folder: Path) -> str:
        """See `Learner.save_checkpoint`."""
        with self._alone():
            return self._learner.save_checkpoint(folder)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_used)
            self._is_used = True
        try:
            yield
        finally:
            self._give_back()

    def _lend(self) -> None:
        """Let one waiting thread sample; called by the update."""
        with self._changed:
            if self._num_waiting:
                self._is_lent, self._is_used = True, False
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._is_lent)

    def _give_back(self) -> None:
        with self._changed:
            # Return it to the update that lent it, or to the next caller.
            self._is_used, self._is_lent = self._is_lent, False
            self._changed.notify_all()

    def _forget_ended(self) -> None:
        """Forget ended episodes; needs exclusive use of the learner."""
        while self._forgotten:
            self._learner.forget(self._forgotten.popleft())
