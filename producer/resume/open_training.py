"""Begins or continues a training: read what exists, decide, claim, replay what is pending.

The claim comes first: nothing is emitted on any other stream before the training's own claim has
been read back from the log.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Generic

from producer.emit import Emitter, StreamWriter
from producer.emit.ownership import OwnershipMonitor, claim
from producer.errors import MismatchError, UsageError
from producer.log.event_log import EventLog
from producer.log.stream_history import StreamHistory
from producer.resume import resume_state
from producer.resume.active_writer import add_writer, refuse_active_writer
from producer.resume.orphans import close_orphans
from producer.resume.read_history import read_training_history
from producer.resume.resume_state import Manifest, SavedState
from producer.resume.same_tasks import check_same_tasks
from producer.resume.supersede import supersede_generation
from producer.resume.training_config import ConfigT, TrainingConfig
from producer.resume.training_history import TrainingHistory
from producer.resume.valid_states import valid_states
from schemas import ids
from schemas.base import Payload
from schemas.catalogue import stream as stream_of
from schemas.task import TaskStated
from schemas.training import TrainingCreated, TrainingInitializing, TrainingResumed

logger = logging.getLogger(__name__)

LOG_TIMEOUT_S = 60.0
"""Beginning and continuing need the log; how long to wait for it."""


@dataclass(frozen=True, slots=True)
class RecordedTraining:
    """What the log and the disk hold of a training."""

    run_name: str
    history: TrainingHistory
    stream: StreamHistory
    """The training's own stream; empty for a new training."""
    states: Sequence[SavedState]
    """Whole states, newest first."""
    log_id: str
    log_ends: dict[str, int]
    """Offsets at or before everything emitted from now on."""

    def read_whole(self, log: EventLog) -> "RecordedTraining":
        """The same with every stream from its beginning."""
        history = read_training_history(log, ids.training_id(self.run_name), start={}, since={})
        own = history.training_stream(ids.training_id(self.run_name))
        return replace(self, history=history, stream=own)

    @property
    def status(self) -> str | None:
        """Of the training; None for a new one."""
        return self.stream.statuses.get(("training", ids.training_id(self.run_name)))


@dataclass(frozen=True, slots=True)
class Plan(Generic[ConfigT]):
    """How to go on."""

    config: ConfigT
    generation: int
    begins_generation: bool
    """What the generation before did after `manifest.step` is to be marked superseded."""
    manifest: Manifest
    state_folder: Path | None
    """State to load; None: begin with a fresh policy."""
    first: TrainingCreated | TrainingResumed
    """The event that claims the training."""
    lost_step: int = 0
    """Newest finished step, when its state is not here any more; 0: nothing is lost."""


@dataclass(frozen=True, slots=True)
class AlreadyComplete(Generic[ConfigT]):
    """Nothing is left to do."""

    config: ConfigT
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class OpenedTraining(Generic[ConfigT]):
    """A training that this process owns."""

    plan: Plan[ConfigT]
    stream: StreamWriter
    history: TrainingHistory
    monitor: OwnershipMonitor


def open_training(
    emitter: Emitter,
    run_name: str,
    asked: ConfigT,
    run_folder: Path,
    *,
    clock: Callable[[], datetime],
    overwrite: bool = False,
    takeover: bool = False,
    stop: threading.Event | None = None,
    before_claim: Callable[[ConfigT], Sequence[TaskStated] | None] = lambda _config: None,
    fetch_drops: Callable[[], bool] = lambda: False,
    remake_state: Callable[[RecordedTraining, ConfigT], bool] = lambda _recorded, _config: False,
) -> OpenedTraining[ConfigT] | AlreadyComplete[ConfigT]:
    """Begin the training or continue it.

    The caller holds the lock of `run_folder`. UsageError for settings other than the recorded ones,
    CuaTrainError when another process may train it (not with `takeover`), UnreachableError when the
    log is away for `LOG_TIMEOUT_S`, StopRequestedError when `stop` is set meanwhile. `before_claim`
    loads what the configuration names and returns its tasks: a training that goes on must have the
    same (UsageError; None: not compared). What it raises leaves nothing in the log. `fetch_drops`:
    as `read_recorded_training`. `remake_state`: makes a lost state again; returns whether it did.
    """
    recorded = read_recorded_training(emitter, run_name, run_folder, stop, fetch_drops)
    if recorded.stream.exists and not takeover:
        refuse_active_writer(
            run_name,
            recorded.stream,
            recorded.status,
            run_folder,
            clock(),
            is_log_shared=emitter.log.is_shared,
        )
    plan = plan_training(recorded, asked, run_folder, overwrite=overwrite)
    if isinstance(plan, AlreadyComplete):
        return plan
    if (
        plan.lost_step
        and not overwrite
        and remake_state(recorded.read_whole(emitter.log), plan.config)
    ):
        recorded = read_recorded_training(emitter, run_name, run_folder, stop, fetch_drops)
        plan = plan_training(recorded, asked, run_folder, overwrite=overwrite)
        assert isinstance(plan, Plan)  # noqa: S101  # it was not complete before
    tasks = before_claim(plan.config)
    # A generation that keeps no step mixes nothing: a task that failed may have been mended.
    begins_anew = plan.begins_generation and plan.manifest.step == 0
    if tasks is not None and not begins_anew:
        check_same_tasks(recorded.stream, tasks)
    add_writer(run_folder, emitter.source)
    stream, monitor = claim(emitter, plan.first, recorded.stream, recorded.history.ends)
    if isinstance(plan.first, TrainingCreated):
        stream.emit(TrainingInitializing())
    else:
        _replay_pending(plan, recorded, stream, emitter, clock)
    return OpenedTraining(plan, stream, recorded.history, monitor)


def read_recorded_training(
    emitter: Emitter,
    run_name: str,
    run_folder: Path,
    stop: threading.Event | None = None,
    fetch_drops: Callable[[], bool] = lambda: False,
) -> RecordedTraining:
    """The training as recorded: its own stream whole, other streams since the newest state.

    `fetch_drops` fetches what operators gave up on other hosts; returns whether any is new; it is
    asked once, of a training that exists.
    """
    log = emitter.log
    log_id = log.log_id(LOG_TIMEOUT_S, stop)
    # Records that dead processes left in the spool belong to the history that is read now.
    log.wait_shipped(LOG_TIMEOUT_S, stop)
    states = [_for_log(state, log_id) for state in resume_state.find_states(run_folder)]
    log_ends = resume_state.bounds_to_json(log.lower_bounds())
    training_id = ids.training_id(run_name)
    log.check_not_held(stream_of("training", training_id))
    has_fetched = False
    while True:
        newest = states[0].manifest if states else None
        try:
            history = read_training_history(
                log,
                training_id,
                start=resume_state.bounds_from_json(newest.log_start) if newest else {},
                since=resume_state.bounds_from_json(newest.since) if newest else {},
            )
        except MismatchError:
            # It may be about a record that was given up on another host.
            if has_fetched or not fetch_drops():
                raise
            has_fetched = True
            continue
        stream = history.training_stream(training_id)
        if stream.exists and not has_fetched:
            has_fetched = True
            if fetch_drops():
                continue
        counting = valid_states(states, stream, training_id)
        if counting[:1] == states[:1]:
            return RecordedTraining(run_name, history, stream, counting, log_id, log_ends)
        # The bounds of a state that does not count may be too late.
        states = counting


def _for_log(state: SavedState, log_id: str) -> SavedState:
    """A state whose offsets hold in this log; those of another log are dropped."""
    if state.manifest.log_id == log_id:
        return state
    manifest = replace(state.manifest, log_id=log_id, log_start={}, since={})
    return SavedState(manifest, state.folder)


def plan_training(
    recorded: RecordedTraining, asked: ConfigT, run_folder: Path, *, overwrite: bool
) -> Plan[ConfigT] | AlreadyComplete[ConfigT]:
    """Decide how to go on. Pure. UsageError for settings that contradict the record."""
    if not recorded.stream.exists:
        return _plan_new(recorded, asked, run_folder)
    _check_kind(recorded, asked)
    last = recorded.history.last_configuration(recorded.stream)
    config = asked.continuing(last.config, overwrite=overwrite)
    generation = last.generation if isinstance(last, TrainingResumed) else 0
    manifest, folder = _state_to_load(recorded, generation)
    steps_done = recorded.history.steps_done(recorded.stream, generation)
    newest_done = max(steps_done, default=0)
    is_complete = recorded.status == "completed" and config.num_steps <= newest_done
    if config.baseline_only:
        done = sum(evaluation.step == 0 for evaluation in manifest.evaluations)
        is_complete = done >= config.num_baselines
    if is_complete and not overwrite:
        return AlreadyComplete(config, manifest)
    has_failed = recorded.history.has_failed_parts(recorded.stream, generation)
    has_begun = bool(steps_done) or recorded.history.has_evaluations(generation)
    known = {evaluation.label for evaluation in manifest.evaluations}
    begins_generation = (
        overwrite
        or (folder is None and has_begun)
        or manifest.step < newest_done
        or has_failed
        or recorded.history.has_given_up_evaluation(generation, known)
    )
    lost_step = newest_done if manifest.step < newest_done and not has_failed else 0
    if begins_generation:
        kept_step = 0 if overwrite else manifest.step
        generation += 1
        manifest = _first_of_generation(manifest, generation, kept_step)
        folder = None if overwrite else folder
    first = TrainingResumed(
        generation=generation,
        current_step=manifest.step,
        total_steps=config.num_steps,
        recipe=config.recipe(run_folder),
        config=config.recorded(),
        status_message=f"continues after step {manifest.step}",
    )
    return Plan(config, generation, begins_generation, manifest, folder, first, lost_step=lost_step)


def _check_kind(recorded: RecordedTraining, asked: TrainingConfig) -> None:
    """UsageError when another command trains it."""
    created = recorded.stream.events[0].payload
    if isinstance(created, TrainingCreated) and created.kind != asked.kind:
        command = "cua-train run" if created.kind == "rl" else "cua-train sql"
        message = f"training {recorded.run_name!r} was begun by `{command}`"
        ways = ("continue it with that", "choose another --training-name")
        raise UsageError(message, ways=ways)


def _plan_new(recorded: RecordedTraining, asked: ConfigT, run_folder: Path) -> Plan[ConfigT]:
    first = TrainingCreated(
        run_name=recorded.run_name,
        kind=asked.kind,
        recipe=asked.recipe(run_folder),
        total_steps=asked.num_steps,
        config=asked.recorded(),
    )
    manifest = _empty_manifest(recorded, 0, log_start=recorded.log_ends)
    return Plan(asked, 0, False, manifest, None, first)  # noqa: FBT003  # a new training supersedes nothing


def _empty_manifest(
    recorded: RecordedTraining, generation: int, *, log_start: dict[str, int]
) -> Manifest:
    return Manifest(
        training_name=recorded.run_name,
        generation=generation,
        step=0,
        policy_version=0,
        log_id=recorded.log_id,
        log_start=log_start,
        since=recorded.log_ends,
    )


def _first_of_generation(manifest: Manifest, generation: int, kept_step: int) -> Manifest:
    kept = tuple(
        evaluation
        for evaluation in manifest.evaluations
        if kept_step and evaluation.step <= kept_step
    )
    return replace(manifest, generation=generation, step=kept_step, evaluations=kept, pending=())


def _state_to_load(recorded: RecordedTraining, generation: int) -> tuple[Manifest, Path | None]:
    """The newest state of the generation, else the one it began from, else the beginning."""
    began_at = recorded.history.step_before_generation(recorded.stream, generation)
    for manifest, folder in recorded.states:
        is_earlier = manifest.generation < generation and manifest.step <= began_at
        if manifest.generation == generation or is_earlier:
            return manifest, folder
    return _empty_manifest(recorded, generation, log_start={}), None


def _replay_pending(
    plan: Plan[ConfigT],
    recorded: RecordedTraining,
    stream: StreamWriter,
    emitter: Emitter,
    clock: Callable[[], datetime],
) -> None:
    """Finish what the last process left: orphans, superseded parts, its manifest's events."""
    training_id = ids.training_id(recorded.run_name)
    num_closed = close_orphans(recorded.history, emitter, training_id, clock)
    logger.info(
        "training %r continues after step %d of %d; closed %d unfinished rollouts",
        recorded.run_name,
        plan.manifest.step,
        plan.config.num_steps,
        num_closed,
    )
    if plan.begins_generation:
        logger.info(
            "generation %d begins after step %d; later steps are kept and marked superseded",
            plan.generation,
            plan.manifest.step,
        )
        supersede_generation(
            recorded.history,
            stream,
            emitter,
            generation=plan.generation - 1,
            kept_step=plan.manifest.step,
        )
    for pending in plan.manifest.pending:
        payload = resume_state.pending_from_json(pending)
        if payload.STATUS is not None:
            stream.ensure(payload)
        elif not _is_recorded(payload, recorded.stream):
            stream.emit(payload)


def _is_recorded(payload: Payload, stream: StreamHistory) -> bool:
    """Whether the stream holds this type of event about the same step."""
    step_id = getattr(payload, "step_id", None)
    return any(
        type(event.payload) is type(payload) and getattr(event.payload, "step_id", None) == step_id
        for event in stream.events
    )
