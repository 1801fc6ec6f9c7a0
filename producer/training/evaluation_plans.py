"""The evaluations of a training at a step: the main one, and a sampled one next to a greedy one."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from producer.config.evaluation import EvaluationPass
from producer.rollouts.plan import StatedTask
from producer.training.batches import episodes_of_tasks
from producer.training.evaluation import EvaluationPlan
from producer.training.session import Session
from schemas import ids
from schemas.catalogue import stream
from schemas.evaluation import Kind, Split, evaluation_label


@dataclass(frozen=True, slots=True)
class EvaluatedTasks:
    """What evaluations ask."""

    tasks: Sequence[StatedTask]
    split: Split | None
    """How they relate to the training's tasks; None: no training."""
    source: str
    """Their short name."""
    seeds_matter: bool
    """Whether a seed changes a task's initial state."""

    def episodes(self, asked: EvaluationPass) -> int:
        """Greedy episodes of a task that no seed changes are all the same: one of each is run."""
        if asked.temperature or self.seeds_matter:
            return asked.episodes
        return min(asked.episodes, len(self.tasks))

    def num_tasks(self, episodes: int) -> int:
        """Distinct tasks that are judged in so many episodes."""
        shares = episodes_of_tasks([task.task for task in self.tasks], episodes)
        return len({task.task_id for task, _ in shares if task.is_judged})


def plan_evaluations(
    session: Session, evaluated: EvaluatedTasks, step: int
) -> tuple[EvaluationPlan, ...]:
    """Those after step `step`; 0: before the first. The main one comes first."""
    kind: Kind = "scheduled" if step else "baseline"
    return tuple(
        _plan(session, evaluated, kind, step, evaluation_evaluation)
        for evaluation_evaluation in session.config.evaluation_passes
    )


def _plan(
    session: Session, evaluated: EvaluatedTasks, kind: Kind, step: int, asked: EvaluationPass
) -> EvaluationPlan:
    episodes = evaluated.episodes(asked)
    temperature: float | None = asked.temperature
    evaluation_id = _id(session, step, temperature)
    if asked == session.config.evaluation_passes[0] and _is_begun(session, _id(session, step)):
        # An older release began it, and recorded no temperature.
        evaluation_id, temperature = _id(session, step), None
    return EvaluationPlan(
        kind,
        evaluation_id,
        evaluation_label(kind, step, temperature),
        step,
        temperature,
        episodes,
        evaluated.split,
        evaluated.num_tasks(episodes),
        evaluated.source,
    )


def _id(session: Session, step: int, temperature: float | None = None) -> UUID:
    return ids.point_id(session.own_training_id, session.generation, step, temperature)


def _is_begun(session: Session, evaluation_id: UUID) -> bool:
    return bool(session.history.of(stream("evaluation", evaluation_id)).events)
