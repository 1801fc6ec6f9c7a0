"""Runs one environment's calls on a thread of its own, so that one that hangs is given up without stopping anything else.

Guarantees: jobs of one worker run one after the other; every job's outcome is put once on the shared queue, unless the worker was
abandoned first; a thread that never returns is a daemon and dies with the process.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Generic, TypeVar

Owner = TypeVar("Owner")


@dataclass(frozen=True, slots=True)
class JobDone(Generic[Owner]):
    """The outcome of one job."""

    owner: Owner
    value: object
    error: BaseException | None
    """What the job raised; `value` is None then."""


class EnvironmentWorker(Generic[Owner]):
    """A thread for one owner (a rollout)."""

    def __init__(self, owner: Owner, done: "SimpleQueue[JobDone[Owner]]", name: str) -> None:
        self._owner = owner
        self._done = done
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._is_abandoned = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], object]) -> None:
        """Run the job after those before it; does not wait."""
        self._jobs.put(job)

    def finish(self) -> None:
        """Let the thread end after the jobs it has; does not wait."""
        self._jobs.put(None)

    def abandon(self) -> None:
        """Whatever the thread still does, its outcome is dropped."""
        self._is_abandoned = True
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None and not self._is_abandoned:
            value, failure = None, None
            try:
                value = job()
            except BaseException as error:  # noqa: BLE001  # the boundary of one environment: whatever it raises is a failed attempt
                failure = error
            if not self._is_abandoned:
                self._done.put(JobDone(self._owner, value, failure))
