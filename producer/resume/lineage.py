"""Which steps and checkpoints of a training count: a generation keeps those it began from."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from schemas.base import Payload
from schemas.checkpoint import CheckpointSaved
from schemas.step import Sample, SamplesChosen, StepCreated, StepFinished
from schemas.training import TrainingResumed


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A finished step that counts."""

    number: int
    generation: int
    finished: StepFinished
    samples: tuple[Sample, ...]
    """In the order in which they were recorded."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """What the newest generation did, after what it kept of those before."""

    steps: dict[int, RecordedStep]
    """By number, ascending."""
    checkpoints: list[CheckpointSaved]
    """Oldest first."""


def recorded_lineage(payloads: Iterable[Payload]) -> Lineage:
    """The steps and checkpoints that count. `payloads`: the training's own stream, in order."""
    created: dict[UUID, StepCreated] = {}
    samples: dict[UUID, list[Sample]] = {}
    steps: dict[int, RecordedStep] = {}
    checkpoints: dict[tuple[int, int], CheckpointSaved] = {}
    generation = 0
    for payload in payloads:
        match payload:
            case StepCreated():
                created[payload.step_id] = payload
            case SamplesChosen():
                samples.setdefault(payload.step_id, []).extend(payload.samples)
            case StepFinished():
                step = created[payload.step_id]
                chosen = tuple(samples.get(payload.step_id, ()))
                steps[step.step] = RecordedStep(step.step, step.generation, payload, chosen)
            case CheckpointSaved():
                checkpoints[payload.generation, payload.step] = payload
            case TrainingResumed() if payload.generation > generation:
                generation, kept = payload.generation, payload.current_step
                steps = {number: one for number, one in steps.items() if number <= kept}
                # A generation that keeps no step has a first state of its own.
                checkpoints = {
                    at: one for at, one in checkpoints.items() if kept and one.step <= kept
                }
            case _:
                pass
    return Lineage(dict(sorted(steps.items())), list(checkpoints.values()))
