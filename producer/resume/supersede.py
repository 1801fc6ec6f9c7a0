"""Marks what an older generation did after the step that is kept. Nothing is deleted."""

from producer.emit import Emitter, StreamWriter
from producer.emit.ownership import claim
from producer.resume.recorded_evaluations import has_ended, has_failed
from producer.resume.training_history import TrainingHistory
from schemas.catalogue import stream_owner
from schemas.evaluation import EvaluationCreated, EvaluationSuperseded
from schemas.group import GroupCreated
from schemas.step import StepCreated
from schemas.training import StepSuperseded


def supersede_generation(
    history: TrainingHistory,
    stream: StreamWriter,
    emitter: Emitter,
    *,
    generation: int,
    kept_step: int,
) -> None:
    """Supersede the generation's steps after `kept_step`, and what evaluates one of those.

    Of its other evaluations those that have not ended, and scheduled ones that failed: the next
    generation has its own. `stream`: the training's; evaluations are continued in an epoch of their
    own.
    """
    payloads = history.payloads_of(stream.subject)
    groups = [payload for payload in payloads if isinstance(payload, GroupCreated)]
    for step in payloads:
        is_late = isinstance(step, StepCreated) and step.step > kept_step
        if isinstance(step, StepCreated) and is_late and step.generation == generation:
            of_step = tuple(group.group_id for group in groups if group.source_id == step.step_id)
            stream.emit(StepSuperseded(step_id=step.step_id, group_ids=of_step))
    for subject, evaluation in history.evaluations():
        created = evaluation.events[0].payload
        is_older = isinstance(created, EvaluationCreated) and created.generation != generation
        if not isinstance(created, EvaluationCreated) or is_older or evaluation.is_abandoned:
            continue
        is_late = (created.step or 0) > kept_step or has_failed(created, evaluation)
        is_open = created.kind != "manual" and not has_ended(created, evaluation)
        if (created.kind == "scheduled" and is_late) or is_open:
            of_evaluation = tuple(
                event.payload.group_id
                for event in evaluation.events
                if isinstance(event.payload, GroupCreated)
                and event.payload.source_id == stream_owner(subject)
            )
            # Read back: a paused process that goes on may have written in between.
            claimed = claim(
                emitter,
                EvaluationSuperseded(kind=created.kind, group_ids=of_evaluation),
                evaluation,
                history.ends,
                training_id=stream.training_id,
            )
            claimed.stream.close()
