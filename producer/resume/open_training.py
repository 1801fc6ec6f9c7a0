"""Begins or resumes a training: read the record, decide, claim, replay pending events.

The claim comes first: nothing is emitted on any other stream before the training's own claim has
been read back from the log. Nothing of an older generation is deleted.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Generic, Literal, Protocol, Self, TypeVar

from pydantic import JsonValue

from producer.emit import Emitter, StreamWriter
from producer.emit.ownership import OwnershipMonitor, claim
from producer.errors import UsageError
from producer.log.event_log import EventLog
from producer.log.stream_history import StreamHistory
from producer.resume import resume_state
from producer.resume.orphans import close_orphans
from producer.resume.recorded_training import RecordedTraining, read_recorded_training
from producer.resume.resume_state import Manifest
from producer.resume.same_tasks import check_same_tasks
from producer.resume.training_history import TrainingHistory
from producer.resume.training_lock import add_writer, refuse_active_writer
from schemas import ids
from schemas.base import Payload
from schemas.evaluation import EvaluationSuperseded
from schemas.group import GroupCreated
from schemas.task import TaskStated
from schemas.training import (
    RECORDED_BY,
    Recipe,
    StepSuperseded,
    TrainingCreated,
    TrainingInitializing,
    TrainingResumed,
)

logger = logging.getLogger(__name__)


class TrainingConfig(Protocol):
    """The settings of one training, frozen."""

    @property
    def kind(self) -> Literal["rl", "sft"]:
        """Kind, as recorded by `TrainingCreated`."""

    @property
    def num_steps(self) -> int:
        """Number of requested steps."""

    @property
    def baseline_only(self) -> bool:
        """Whether only the evaluations before the first step are requested."""

    @property
    def num_baselines(self) -> int:
        """Number of evaluations before the first step: one per temperature."""

    def recorded(self) -> dict[str, JsonValue]:
        """The settings as JSON, for the training's first event."""

    def recipe(self, log_path: Path) -> Recipe:
        """The settings that have their own columns."""

    def continuing(self, recorded: dict[str, JsonValue], *, overwrite: bool) -> Self:
        """The recorded settings merged with the given ones; `overwrite` allows any change.

        Raises UsageError for a setting that a resumed training cannot change.
        """


ConfigT = TypeVar("ConfigT", bound=TrainingConfig)


@dataclass(frozen=True, slots=True)
class Plan(Generic[ConfigT]):
    """How to begin or resume a training."""

    config: ConfigT
    generation: int
    begins_generation: bool
    """Whether the previous generation's work after `manifest.step` is to be marked superseded."""
    manifest: Manifest
    state_folder: Path | None
    """Folder of the state to load; None: begin with a fresh policy."""
    first: TrainingCreated | TrainingResumed
    """The event that claims the training."""
    lost_step: int = 0
    """Newest finished step, if its state no longer exists; 0 if nothing is lost."""


@dataclass(frozen=True, slots=True)
class AlreadyComplete(Generic[ConfigT]):
    """The training has no work left."""

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
    restore_state: Callable[[RecordedTraining, ConfigT, EventLog], bool] = lambda *_: False,
    keeps_unfinished: bool = True,
) -> OpenedTraining[ConfigT] | AlreadyComplete[ConfigT]:
    """Begin the training or resume it. The caller holds the lock of `run_folder`.

    `before_claim` loads what the configuration names and returns its tasks; a resumed training must
    have the same ones (None: not compared). If it raises, the log is unchanged. `restore_state`
    restores a lost state and returns whether it could. `keeps_unfinished`: as in `plan_training`.

    Raises UsageError for settings or tasks other than the recorded ones, CuaTrainError if another
    process may be training it (unless `takeover`), UnreachableError if the log cannot be reached
    for `LOG_TIMEOUT_S`, and StopRequestedError if `stop` is set meanwhile.
    """
    recorded = read_recorded_training(emitter, run_name, run_folder, stop)
    if recorded.stream.exists and not takeover:
        refuse_active_writer(
            run_name,
            recorded.stream,
            recorded.status,
            run_folder,
            clock(),
            is_log_shared=emitter.log.is_shared,
        )
    plan = plan_training(
        recorded, asked, run_folder, overwrite=overwrite, keeps_unfinished=keeps_unfinished
    )
    if isinstance(plan, AlreadyComplete):
        return plan
    if plan.lost_step and not overwrite and restore_state(recorded, plan.config, emitter.log):
        recorded = read_recorded_training(emitter, run_name, run_folder, stop)
        plan = plan_training(recorded, asked, run_folder, overwrite=overwrite)
        assert isinstance(plan, Plan)  # noqa: S101  # it was not complete before
    tasks = before_claim(plan.config)
    # A generation that keeps no step mixes no tasks: a faulty task may have been corrected.
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


def plan_training(
    recorded: RecordedTraining,
    asked: ConfigT,
    run_folder: Path,
    *,
    overwrite: bool,
    keeps_unfinished: bool = True,
) -> Plan[ConfigT] | AlreadyComplete[ConfigT]:
    """Decide how to proceed. Pure. Raises UsageError for settings that contradict the record.

    `keeps_unfinished`: an interrupted step or evaluation is resumed where it stopped; if False, a
    new generation repeats it.
    """
    if not recorded.stream.exists:
        return _plan_new(recorded, asked, run_folder)
    _check_kind(recorded, asked)
    last = recorded.history.newest_configuration
    config = asked.continuing(last.config, overwrite=overwrite)
    generation = last.generation if isinstance(last, TrainingResumed) else 0
    manifest, folder = _state_to_load(recorded, generation)
    newest_done = recorded.history.last_step(generation, "completed")
    is_complete = recorded.status == "completed" and config.num_steps <= newest_done
    if config.baseline_only:
        done = sum(evaluation.step == 0 for evaluation in manifest.evaluations)
        is_complete = done >= config.num_baselines
    if is_complete and not overwrite:
        return AlreadyComplete(config, manifest)
    if config.num_steps < newest_done and not (overwrite or config.baseline_only):
        message = (
            f"num_steps: {config.num_steps} is less than the {newest_done} steps that the training"
            f" has completed; give {newest_done} to end it there, or more to continue it"
        )
        raise UsageError(message)
    has_failed = recorded.history.has_failed_parts(generation)
    has_begun = bool(newest_done or recorded.history.scheduled(generation))
    known = {evaluation.label for evaluation in manifest.evaluations}
    begins_generation = (
        overwrite
        or (folder is None and has_begun)
        or manifest.step < newest_done
        or has_failed
        or recorded.history.has_given_up_evaluation(generation, known)
        or (not keeps_unfinished and recorded.history.has_unfinished(generation, manifest.step))
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
    """Raises UsageError if the training was begun by another command."""
    created = recorded.stream.events[0].payload
    if not isinstance(created, TrainingCreated):
        return
    command = _begun_by(created.kind, created.config)
    if command != _begun_by(asked.kind, asked.recorded()):
        message = f"training {recorded.run_name!r} was begun by `{command}`"
        ways = ("continue it with that", "choose another --training-name")
        raise UsageError(message, ways=ways)


def _begun_by(kind: str, config: Mapping[str, JsonValue]) -> str:
    if RECORDED_BY in config:
        return "record.open"
    return "cua-train run" if kind == "rl" else "cua-train sql"


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
    """The newest state of the generation, else the one it began from, else the initial one."""
    began_at = recorded.history.step_before_generation(generation)
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
    """Whether the stream contains this type of event for the same step."""
    step_id = getattr(payload, "step_id", None)
    return any(
        type(event.payload) is type(payload) and getattr(event.payload, "step_id", None) == step_id
        for event in stream.events
    )


def supersede_generation(
    history: TrainingHistory,
    stream: StreamWriter,
    emitter: Emitter,
    *,
    generation: int,
    kept_step: int,
) -> None:
    """Supersede the generation's steps after `kept_step`, and the evaluations of those steps.

    Also supersedes its unfinished evaluations, except manual ones, and scheduled ones that failed,
    because the next generation makes its own. `stream` is the training's; each evaluation is
    continued in an epoch of its own.
    """
    groups = history.own_payloads(GroupCreated)
    for step in history.steps_begun(generation):
        if step.step > kept_step:
            of_step = tuple(group.group_id for group in groups if group.source_id == step.step_id)
            stream.emit(StepSuperseded(step_id=step.step_id, group_ids=of_step))
    for item in history.evaluations():
        created = item.created
        if created.generation != generation or item.stream.is_dropped:
            continue
        is_late = (created.step or 0) > kept_step or item.status == "failed"
        is_open = created.kind != "manual" and not item.has_ended
        if (created.kind == "scheduled" and is_late) or is_open:
            groups = history.payloads_of(item.stream.subject, GroupCreated)
            of_it = tuple(group.group_id for group in groups if group.source_id == item.id)
            # Read back, because a paused process may have woken up and written in between.
            claimed = claim(
                emitter,
                EvaluationSuperseded(kind=created.kind, group_ids=of_it),
                item.stream,
                history.ends,
                training_id=stream.training_id,
            )
            claimed.stream.close()
