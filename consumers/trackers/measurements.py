"""What a training's events say to an experiment tracker. Pure."""

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from pydantic import JsonValue

from consumers.trackers.tracker import Measurement, Outcome, TrackedRun
from schemas.evaluation import EvaluationCreated, EvaluationFinished, evaluation_label
from schemas.evaluation_text import metric_name
from schemas.event import Event
from schemas.step import StepCreated, StepFinished
from schemas.training import (
    TrainingCancelled,
    TrainingCompleted,
    TrainingCreated,
    TrainingFailed,
    TrainingResumed,
)


@dataclass(frozen=True, slots=True)
class RunBegan:
    """A run begins, or goes on with settings that may have changed."""

    run: TrackedRun


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement of a run that has begun."""

    run: TrackedRun
    measurement: Measurement


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run ended; it may begin again."""

    run: TrackedRun
    outcome: Outcome
    message: str | None


Change = RunBegan | Measured | RunEnded


@dataclass(frozen=True, slots=True)
class _Place:
    """A step or an evaluation."""

    name: str
    generation: int
    step: int
    evaluation: EvaluationCreated | None = None
    """None: a step."""


@dataclass(slots=True)
class TrainingMeasurements:
    """One training's events to changes. Events of each stream in order; streams in any order."""

    run: TrackedRun | None = None
    """The newest generation; None before the training's first event."""
    measured: dict[int, list[Measurement]] = field(default_factory=dict)
    """By generation."""
    _places: dict[UUID, _Place] = field(default_factory=dict)
    _early: list[tuple[_Place, Measurement]] = field(default_factory=list)
    """Of evaluations that were read before the event that began their generation."""

    def take(self, event: Event) -> list[Change]:
        """What follows from one event of the training's stream or of its evaluations'."""
        payload, envelope = event.payload, event.envelope
        match payload:
            case TrainingCreated():
                owner = UUID(envelope.subject.partition("/")[2])
                return self._begin(TrackedRun(owner, payload.run_name, 0, payload.config))
            case TrainingResumed() if self.run is not None:
                return self._resume(self.run, payload)
            case StepCreated():
                name = f"step-{payload.step}"
                self._places[payload.step_id] = _Place(name, payload.generation, payload.step)
            case EvaluationCreated() if payload.kind != "manual":
                step = payload.step or 0
                name = evaluation_label(payload.kind, step, payload.temperature)
                owner = UUID(envelope.subject.partition("/")[2])
                self._places[owner] = _Place(name, payload.generation or 0, step, payload)
            case StepFinished():
                return self._measure(
                    self._places.get(payload.step_id), event, step_metrics(payload)
                )
            case EvaluationFinished():
                owner = UUID(envelope.subject.partition("/")[2])
                place = self._places.get(owner)
                if place is not None and place.evaluation is not None:
                    metrics = evaluation_metrics(place.evaluation, payload)
                    return self._measure(place, event, metrics)
            case TrainingCompleted() | TrainingFailed() | TrainingCancelled():
                return self._end(payload)
            case _:
                pass
        return []

    def _begin(self, run: TrackedRun) -> list[Change]:
        self.run = run
        early, self._early = self._early, []
        changes: list[Change] = [RunBegan(run)]
        for place, measurement in early:
            changes += self._add(place, measurement)
        return changes

    def _resume(self, run: TrackedRun, resumed: TrainingResumed) -> list[Change]:
        continued = TrackedRun(
            run.training_id, run.training_name, resumed.generation, resumed.config
        )
        if resumed.generation == run.generation:
            self.run = continued
            return [RunBegan(continued)]
        earlier = self.measured.get(run.generation, [])
        kept = [
            item for item in earlier if item.step <= resumed.current_step and resumed.current_step
        ]
        self.measured[resumed.generation] = kept[:]
        changes = self._begin(continued)
        changes[1:1] = [Measured(continued, measurement) for measurement in kept]
        return changes

    def _measure(
        self, place: _Place | None, event: Event, metrics: dict[str, float]
    ) -> list[Change]:
        if place is None:
            return []
        measurement = Measurement(place.name, place.step, event.envelope.time, metrics)
        return self._add(place, measurement)

    def _add(self, place: _Place, measurement: Measurement) -> list[Change]:
        run = self.run
        if run is None or place.generation > run.generation:
            self._early.append((place, measurement))
            return []
        self.measured.setdefault(place.generation, []).append(measurement)
        if place.generation < run.generation:
            return []
        return [Measured(run, measurement)]

    def _end(self, payload: TrainingCompleted | TrainingFailed | TrainingCancelled) -> list[Change]:
        if self.run is None:
            return []
        if isinstance(payload, TrainingFailed):
            return [RunEnded(self.run, "failed", payload.error_message)]
        outcome: Outcome = "completed" if isinstance(payload, TrainingCompleted) else "cancelled"
        return [RunEnded(self.run, outcome, payload.status_message)]


def step_metrics(finished: StepFinished) -> dict[str, float]:
    """A step's numbers: its metrics, and the fields that have columns."""
    return numbers(finished.metrics) | numbers(
        {
            "optim/loss": finished.loss,
            "optim/gradient_norm": finished.policy_gradient_norm,
            "env/all/reward/std": finished.reward_std,
            "env/all/num_tokens": finished.num_tokens,
        }
    )


def evaluation_metrics(
    created: EvaluationCreated, finished: EvaluationFinished
) -> dict[str, float]:
    """An evaluation's numbers, all below `test/`; those of a sampled one below `test/sampled/`."""
    own: dict[str, JsonValue] = {
        **finished.metrics,
        "success": finished.success_rate,
        "temperature": created.temperature,
        "num_tasks": created.num_tasks,
    }
    measured = numbers({metric_name(name, created.temperature): one for name, one in own.items()})
    seconds = "time/sampled_evaluation" if created.temperature else "time/evaluation"
    return measured | numbers({seconds: finished.eval_time_s})


def numbers(metrics: Mapping[str, JsonValue], prefix: str = "") -> dict[str, float]:
    """Finite numbers by name; a nested object's names follow its own, after a slash."""
    found: dict[str, float] = {}
    for name, value in metrics.items():
        if isinstance(value, dict):
            found |= numbers(value, f"{prefix}{name}/")
        elif isinstance(value, bool | int | float):
            # An integer of JSON may be larger than any float.
            with contextlib.suppress(OverflowError):
                found[prefix + name] = float(value)
    return {name: value for name, value in found.items() if math.isfinite(value)}
