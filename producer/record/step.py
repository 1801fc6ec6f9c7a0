"""A step: its groups, then the update with its metrics."""

import statistics
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from producer.record import values
from producer.record.group import GROUP_METRICS, PartWithGroups
from producer.record.recording import Recording, Source, error_message
from producer.record.values import OrderError, number, number_or_none
from schemas.base import Progress
from schemas.step import (
    SamplesChosen,
    StepCollectionStarted,
    StepCreated,
    StepFailed,
    StepFinished,
    StepRolloutsStarted,
    StepTrainingStarted,
)

SAMPLES_PER_EVENT = 10_000
"""About 3 MiB per event; a group may be of any size."""
OWN_METRICS: Final = GROUP_METRICS | {
    "progress/batch",
    "progress/done_frac",
    "optim/lr",
    "time/total",
}
"""Metrics that a step has without being given them."""


class Step(PartWithGroups):
    """One update of the policy, with the rollouts that it trains on.

    Created by `Training.step`; use it in a `with` block or call `close`.
    """

    def __init__(
        self,
        recording: Recording,
        source: Source,
        step: int,
        learning_rate: float,
        on_end: Callable[["Step", StepFinished | None], None],
    ) -> None:
        """Call with the recording's lock held."""
        super().__init__(recording, source)
        self.number = step
        """Step number, from 1."""
        self._on_end = on_end
        self._learning_rate = learning_rate
        self._trained_at: datetime | None = None
        self._figures: dict[str, float] = {}
        """Metrics with their own column, by argument name."""
        self._metrics: dict[str, JsonValue] = {}
        self._emit(
            StepCreated(
                step_id=source.id,
                generation=recording.owned.generation,
                step=step,
                batch=source.batch,
                learning_rate=learning_rate,
                model_path=recording.settings.policy,
            )
        )

    def update(self) -> None:
        """Record that the rollouts are over and the update begins; `close` does so if needed.

        Raises OrderError while a group is open.
        """
        with self._changing():
            if self._trained_at is not None:
                message = f"the update of {self.title} has begun already"
                raise OrderError(message)
            self._begin_update()

    def metrics(
        self,
        others: Mapping[str, object] | None = None,
        /,
        *,
        loss: float | None = None,
        kl: float | None = None,
        gradient_norm: float | None = None,
        reward_mean: float | None = None,
        **more: object,
    ) -> None:
        """Record metrics of the step; a metric given again replaces the earlier value.

        `kl`: mean of log p_sampling - log p_training over the trained tokens, nats.
        `gradient_norm`: before clipping. `reward_mean`: of rollouts that are not recorded; if any
        are, their recorded rewards are used. None means not measured; NaN is recorded as NaN.

        `others` and `more`: numbers, recorded under their own names; NaN and infinities are
        recorded as null. Raises TypeError for a value that is no number and ValueError for a name
        in `OWN_METRICS`; nothing of that call is recorded.
        """
        given = {"loss": loss, "kl": kl, "gradient_norm": gradient_norm, "reward_mean": reward_mean}
        with self._changing():
            figures = {
                name: number(name, value) for name, value in given.items() if value is not None
            }
            found = values.metrics({**(others or {}), **more}, OWN_METRICS)
            self._figures |= figures
            self._metrics |= found

    def close(self) -> None:
        """End the step, durably on return. Raises OrderError while a group is open."""
        with self._changing():
            self._check_ended()
            if self._trained_at is None and self._groups:
                self._begin_update()
            finished = self._finished()
            self.end = "finished"
            self._on_end(self, finished)

    def _abort(self, error: BaseException) -> None:
        self._abort_groups(error)
        message = error_message(error)
        self.end = "failed"
        self._emit(StepFailed(step_id=self.id, error_message=message, ended_at=self._now()))
        self._on_end(self, None)

    def _check_takes(self, num_rollouts: int) -> None:
        del num_rollouts
        if self._trained_at is not None:
            message = f"the update of {self.title} has begun; it takes no more groups"
            raise OrderError(message)

    def _groups_begin(self) -> None:
        self._emit(StepCollectionStarted(step_id=self.id))

    def _rollouts_begin(self) -> None:
        self._emit(StepRolloutsStarted(step_id=self.id, rollout_started_at=self._now()))

    def _begin_update(self) -> None:
        self._check_ended()
        now = self._trained_at = self._now()
        for group in self._groups:
            samples, dropped = group.train(self._source.policy_version)
            for start in range(0, len(samples), SAMPLES_PER_EVENT):
                part = tuple(samples[start : start + SAMPLES_PER_EVENT])
                self._emit(SamplesChosen(step_id=self.id, samples=part))
            if dropped is not None:
                self._emit(dropped)
        self._emit(
            StepTrainingStarted(step_id=self.id, rollout_ended_at=now, training_started_at=now)
        )

    def _finished(self) -> StepFinished:
        now, finished, figures = self._now(), self._finished_rollouts, self._figures
        rewards = [one.reward for one in finished]
        return StepFinished(
            step_id=self.id,
            training_ended_at=now,
            loss=figures.get("loss", float("nan")),
            kl_divergence=figures.get("kl"),
            policy_gradient_norm=figures.get("gradient_norm"),
            reward_mean=statistics.fmean(rewards) if rewards else figures.get("reward_mean"),
            reward_std=statistics.pstdev(rewards) if rewards else None,
            num_trajectories=len(finished),
            num_tokens=sum(one.num_tokens for one in finished),
            policy_version=self._source.policy_version + 1,
            progress=Progress(percent=100.0),
            metrics={
                "progress/batch": self._source.batch,
                "progress/done_frac": self.number / self._recording.settings.num_steps,
                "optim/lr": self._learning_rate,
                **self._group_metrics(),
                "time/total": max(0.0, (now - self._began_at).total_seconds()),
                **self._metrics,
            },
        )


def recordable(found: Mapping[str, object]) -> dict[str, object]:
    """Those of another trainer's metrics that `Step.metrics` takes, so that none stops it."""
    return {
        name: value
        for name, value in found.items()
        if isinstance(name, str) and name not in OWN_METRICS and number_or_none(value) is not None
    }
