"""The interface Tracker: an experiment tracker that trainings are mirrored to.

Implementations: `wandb_tracker.WandbTracker`, `tensorboard.TensorboardTracker` and
`mlflow_tracker.MlflowTracker`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """One generation of a training: what a tracker calls a run.

    A new generation trains steps again. Trackers cannot take measurements back, so it is a run of
    its own, which begins with the measurements of the steps that it keeps.
    """

    training_id: UUID
    training_name: str
    generation: int
    config: Mapping[str, JsonValue]
    """Every setting; secrets are redacted."""

    @property
    def key(self) -> str:
        """Identifies the run for ever: hex digits and the generation."""
        return f"{self.training_id.hex}-{self.generation}"

    @property
    def display_name(self) -> str:
        """The training's name; of a later generation with its number."""
        if self.generation == 0:
            return self.training_name
        return f"{self.training_name} (generation {self.generation})"


@dataclass(frozen=True, slots=True)
class Measurement:
    """Metrics of a step or of an evaluation."""

    name: str
    """`step-12`, `baseline`, `eval-10`, `eval-10-sampled`: unique within its run."""
    step: int
    """Steps done."""
    time: datetime
    """When they were measured."""
    metrics: Mapping[str, float]
    """Under tinker-cookbook's names; finite."""


Outcome = Literal["completed", "failed", "cancelled"]


class Tracker(Protocol):
    """Where measurements go. One process mirrors a run at a time; called from one thread.

    Methods raise CuaProjectError for what the tracker refuses.
    """

    def begin(self, run: TrackedRun) -> None:
        """Open the run, or continue the one of an earlier process. Idempotent."""
        ...

    def log(self, run: TrackedRun, measurement: Measurement) -> None:
        """Add a measurement of a run that was begun."""
        ...

    def end(self, run: TrackedRun, outcome: Outcome, message: str | None) -> None:
        """Note how the run ended. A run that goes on later is begun again."""
        ...

    def close(self) -> None:
        """Hand over what is not sent yet, or leave it on disk for later. Idempotent."""
        ...
