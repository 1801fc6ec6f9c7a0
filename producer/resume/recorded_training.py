"""What the log and the disk hold of a training, and which of it counts.

A generation keeps the steps and checkpoints that it began from. A saved state counts only if it was
saved under a claim that was valid: a process that was paused and replaced may wake up and save a
state before it notices. The log rejects the rollouts and the step of such a process.
"""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from producer.emit import Emitter
from producer.errors import MismatchError
from producer.log.event_log import EventLog
from producer.log.stream_history import StreamHistory
from producer.resume import resume_state
from producer.resume.resume_state import Manifest, SavedState
from producer.resume.training_history import TrainingHistory, read_training_history
from schemas import ids
from schemas.base import Payload
from schemas.catalogue import stream as stream_of
from schemas.checkpoint import CheckpointSaved
from schemas.home import describe_growth
from schemas.step import Sample, SamplesChosen, StepCreated, StepFinished
from schemas.training import TrainingResumed


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A finished step that counts."""

    number: int
    generation: int
    finished: StepFinished
    samples: tuple[Sample, ...]
    """Samples in the order in which they were recorded."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """The newest generation's work, after what it kept of earlier ones."""

    steps: dict[int, RecordedStep]
    """Steps by number, ascending."""
    checkpoints: list[CheckpointSaved]
    """Checkpoints, oldest first."""


def recorded_lineage(payloads: Iterable[Payload]) -> Lineage:
    """The steps and checkpoints that count; `payloads` are the training's own, in order."""
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
                # A generation that keeps no step has its own first state.
                checkpoints = {
                    at: one for at, one in checkpoints.items() if kept and one.step <= kept
                }
            case _:
                pass
    return Lineage(dict(sorted(steps.items())), list(checkpoints.values()))


def valid_states(
    states: Sequence[SavedState], own: StreamHistory, training_id: UUID
) -> list[SavedState]:
    """The states that were saved under a valid claim. `own`: the training's stream.

    A state counts if its claim is in the log and every later claim up to the step's end resumed
    from that step or a later one.
    """
    return [state for state in states if _counts(state.manifest, own, training_id)]


def _counts(manifest: Manifest, own: StreamHistory, training_id: UUID) -> bool:
    claims: dict[int, tuple[str, Payload]] = {}
    for event in own.events:
        claims.setdefault(event.envelope.epoch, (event.envelope.source, event.payload))
    claim = claims.get(manifest.claim_epoch)
    if claim is None or claim[0] != manifest.claim_source:
        return False
    step_id = ids.step_id(training_id, manifest.generation, manifest.step)
    ended = next(
        (
            event.envelope.epoch
            for event in own.events
            if isinstance(event.payload, StepFinished) and event.payload.step_id == step_id
        ),
        own.position.epoch,
    )
    return not any(
        isinstance(later, TrainingResumed)
        and later.generation == manifest.generation
        and later.current_step < manifest.step
        for epoch, (_, later) in claims.items()
        if manifest.claim_epoch < epoch <= ended
    )


LOG_TIMEOUT_S = 60.0
"""How long to wait for the log, which is needed to begin and to resume."""


@dataclass(frozen=True, slots=True)
class RecordedTraining:
    """What the log and the disk hold of a training."""

    run_name: str
    history: TrainingHistory
    states: Sequence[SavedState]
    """Complete states, newest first."""
    log_id: str
    log_ends: dict[str, int]
    """Offsets at or before everything emitted from now on."""

    @property
    def stream(self) -> StreamHistory:
        """The training's own stream; empty for a new training."""
        return self.history.own

    @property
    def lineage(self) -> Lineage:
        """The steps and checkpoints that count."""
        return recorded_lineage(event.payload for event in self.stream.events)

    def read_whole(self, log: EventLog) -> "RecordedTraining":
        """The same training, with every stream read from its beginning."""
        history = read_training_history(log, ids.training_id(self.run_name), start={}, since={})
        return replace(self, history=history)

    @property
    def status(self) -> str | None:
        """Status of the training; None for a new one."""
        return self.stream.statuses.get(("training", ids.training_id(self.run_name)))


def read_recorded_training(
    emitter: Emitter,
    run_name: str,
    run_folder: Path,
    stop: threading.Event | None = None,
) -> RecordedTraining:
    """The recorded training: its own stream in full, other streams since the newest state."""
    log = emitter.log
    log_id = log.log_id(LOG_TIMEOUT_S, stop)
    # Records that dead processes left in the spool belong to the history read now.
    log.wait_shipped(LOG_TIMEOUT_S, stop)
    states = [_for_log(state, log_id) for state in resume_state.find_states(run_folder)]
    log_ends = resume_state.bounds_to_json(log.lower_bounds())
    training_id = ids.training_id(run_name)
    log.check_not_held(stream_of("training", training_id))
    while True:
        newest = states[0].manifest if states else None
        history = read_training_history(
            log,
            training_id,
            start=resume_state.bounds_from_json(newest.log_start) if newest else {},
            since=resume_state.bounds_from_json(newest.since) if newest else {},
        )
        stream = history.own
        counting = valid_states(states, stream, training_id)
        if counting[:1] == states[:1]:
            return RecordedTraining(run_name, history, counting, log_id, log_ends)
        # The offsets of a state that does not count may be too late.
        states = counting


def _for_log(state: SavedState, log_id: str) -> SavedState:
    """A state whose offsets are valid in this log; offsets of another log are dropped.

    MismatchError for a state of this log before a small topic of it grew.
    """
    if state.manifest.log_id == log_id:
        return state
    if (problem := describe_growth(state.manifest.log_id, log_id)) is not None:
        raise MismatchError(problem)
    manifest = replace(state.manifest, log_id=log_id, log_start={}, since={})
    return SavedState(manifest, state.folder)
