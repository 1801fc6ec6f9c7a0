"""An evaluation: groups of rollouts that train nothing, on their own stream."""

import statistics
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack

from producer.record.group import PartWithGroups
from producer.record.recording import Recording, Source, error_message
from producer.record.values import OrderError
from schemas.base import Progress
from schemas.clustered_errors import TaskCount, clustered_standard_error
from schemas.evaluation import (
    EvaluationCancelled,
    EvaluationFailed,
    EvaluationFinished,
    EvaluationStarted,
    Kind,
)


class Evaluation(PartWithGroups):
    """Created by `Training.evaluation`; use it in a `with` block or call `close`."""

    def __init__(
        self,
        recording: Recording,
        source: Source,
        kind: Kind,
        num_episodes: int,
        marker: ExitStack,
        on_end: Callable[[EvaluationFinished | None], None],
    ) -> None:
        """`marker` is closed after the last event. Call with the recording's lock held."""
        super().__init__(recording, source)
        self._kind: Kind = kind
        self._num_episodes = num_episodes
        self._marker = marker
        self._on_end = on_end

    def close(self) -> None:
        """End the evaluation, durably on return. Raises OrderError while a group is open."""
        with self._changing():
            self._check_ended()
            if not self._finished_rollouts:
                self._fail("no episode ended with a reward")
                return
            finished = self._finished()
            self._emit(finished)
            self._ended("finished", finished)

    def _abort(self, error: BaseException) -> None:
        self._abort_groups(error)
        reason = error_message(error)
        if isinstance(error, Exception):
            self._fail(reason)
            return
        self._emit(EvaluationCancelled(kind=self._kind, reason=reason, ended_at=self._now()))
        self._ended("cancelled")

    def _check_takes(self, num_rollouts: int) -> None:
        total = num_rollouts + sum(group.num_rollouts for group in self._groups)
        if total > self._num_episodes:
            message = (
                f"{self.title} was planned with {self._num_episodes} episodes, and this group would"
                f" make {total}; give evaluation(num_episodes=...)"
            )
            raise OrderError(message)

    def _rollouts_begin(self) -> None:
        self._emit(EvaluationStarted(kind=self._kind, started_at=self._now()))

    def _fail(self, reason: str) -> None:
        self._emit(EvaluationFailed(kind=self._kind, error_message=reason, ended_at=self._now()))
        self._ended("failed")

    def _ended(self, how: str, finished: EvaluationFinished | None = None) -> None:
        self.end = how
        self._stream.close()
        self._recording.emitter.flush()
        self._marker.close()
        self._on_end(finished)

    def _counts(self) -> dict[str, TaskCount]:
        successes: Counter[str] = Counter()
        episodes: Counter[str] = Counter()
        for group in self._groups:
            name = group.task.task.task_id
            successes[name] += sum(one.success for one in group.finished)
            episodes[name] += len(group.finished)
        return {
            name: TaskCount(successes[name], number) for name, number in episodes.items() if number
        }

    def _finished(self) -> EvaluationFinished:
        finished, now = self._finished_rollouts, self._now()
        counts, successes = self._counts(), sum(one.success for one in finished)
        error = clustered_standard_error(counts)
        seconds = max(0.0, (now - self._began_at).total_seconds())
        measured = self._group_metrics()
        return EvaluationFinished(
            kind=self._kind,
            completed_tasks=len(finished),
            eval_time_s=seconds,
            success_rate=successes / len(finished),
            standard_error=error,
            avg_reward=statistics.fmean(one.reward for one in finished),
            avg_turns=statistics.fmean(one.num_turns for one in finished),
            successful_tasks=successes,
            ended_at=now,
            progress=Progress(percent=100.0),
            metrics={
                "standard_error": error,
                "by_task": {name: one.successes / one.episodes for name, one in counts.items()},
                "counts_by_task": {name: list(one) for name, one in counts.items()},
                **{f"test/{name}": value for name, value in measured.items()},
                "time/eval": seconds,
            },
        )
