"""Runs the calls of one environment on its own thread, so that a hanging call blocks no other.

Jobs run in order, one at a time. The outcome of each is put on the shared queue exactly once,
unless the worker was abandoned before. Python cannot stop a thread: a hanging call keeps running,
as does its device, until it returns (the queued jobs, such as closing the device, then still run)
or the process exits (the thread is a daemon).
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
    """The owner whose worker ran the job."""
    value: object
    """What the job returned; None if it raised."""
    error: BaseException | None
    """What the job raised; None if it returned."""


class EnvironmentWorker(Generic[Owner]):
    """One thread, for one owner (a rollout). No method but `join` blocks."""

    def __init__(self, owner: Owner, done: "SimpleQueue[JobDone[Owner]]", name: str) -> None:
        self._owner = owner
        self._done = done
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._is_abandoned = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], object]) -> None:
        """Queue a job."""
        self._jobs.put(job)

    def abandon(self) -> None:
        """Let the thread end after the queued jobs, and drop all outcomes from now on.

        A call that hangs is not interrupted.
        """
        self._is_abandoned = True
        self._jobs.put(None)

    def join(self, timeout_s: float) -> None:
        """Wait, after `abandon`, until the queued jobs are done, for at most `timeout_s`."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            value, failure = None, None
            try:
                value = job()
            except BaseException as error:  # noqa: BLE001  # process boundary of one environment
                failure = error
            if not self._is_abandoned:
                self._done.put(JobDone(self._owner, value, failure))
