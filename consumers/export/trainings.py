"""What trainings and evaluations say about their rollouts: names, tasks, steps, advantages."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from schemas.entry import EntryStated
from schemas.evaluation import EvaluationCreated, EvaluationSuperseded
from schemas.event import Event
from schemas.step import Sample, SamplesChosen, StepCreated
from schemas.task import TaskStated
from schemas.training import StepSuperseded, TrainingCreated


class Place(NamedTuple):
    """A step or an evaluation."""

    generation: int | None
    step: int | None
    """The step; of an evaluation the steps done before it."""


@dataclass(slots=True)
class Trainings:
    """Facts by id."""

    names: dict[UUID, str] = field(default_factory=dict)
    """Training -> its name."""
    tasks: dict[UUID, TaskStated] = field(default_factory=dict)
    entries: dict[UUID, EntryStated] = field(default_factory=dict)
    """By row id; what tasks about databases are made of."""
    places: dict[UUID, Place] = field(default_factory=dict)
    """Step or evaluation -> where it belongs."""
    samples: dict[UUID, Sample] = field(default_factory=dict)
    """Rollout -> its use in a step."""
    superseded_groups: set[UUID] = field(default_factory=set)

    def read(self, events: Iterable[Event]) -> None:
        """Take the facts of these events."""
        for event in events:
            owner = UUID(event.envelope.subject.partition("/")[2])
            match event.payload:
                case TrainingCreated() as created:
                    self.names[owner] = created.run_name
                case TaskStated() as task:
                    self.tasks[task.id] = task
                case EntryStated() as entry:
                    self.entries[entry.id] = entry
                case StepCreated() as step:
                    self.places[step.step_id] = Place(step.generation, step.step)
                case EvaluationCreated() as evaluation:
                    self.places[owner] = Place(evaluation.generation, evaluation.step)
                case SamplesChosen() as chosen:
                    self.samples.update((sample.rollout_id, sample) for sample in chosen.samples)
                case StepSuperseded() | EvaluationSuperseded() as superseded:
                    self.superseded_groups.update(superseded.group_ids)
                case _:
                    pass
