"""Begins or continues a training in the log.

What is there, whether we may go on, from which state, under which generation.

The claim comes first: nothing is emitted on any other stream before the training's own claim has
been read back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from pydantic import JsonValue

from producer.config import RunConfig, differences, read_config, recipe
from producer.emit import Emitter
from producer.emit.ownership import OwnershipMonitor, claim
from producer.emit.speaker import StreamSpeaker
from producer.errors import CuaTrainError, UsageError
from producer.log.stream_history import StreamHistory
from producer.resume import resume_state
from producer.resume.resume_state import Manifest
from producer.resume.training_history import TrainingHistory, read_training_history
from schemas import ids
from schemas.catalogue import BY_TYPE, stream, stream_owner
from schemas.evaluation import EvaluationCreated, EvaluationSuperseded
from schemas.event import Event, Fact
from schemas.group import GroupCreated
from schemas.step import StepCreated
from schemas.training import StepSuperseded, TrainingCreated, TrainingInitializing, TrainingResumed

LOG_TIMEOUT_S = 60.0
"""Beginning and continuing need the log; so long it is waited for."""
TAKEOVER_AFTER_S = 60.0
"""Another host's heartbeat younger than this means that it still trains."""


@dataclass(frozen=True, slots=True)
class OpenedTraining:
    """A training that this process holds."""

    config: RunConfig
    generation: int
    manifest: Manifest
    state_folder: Path | None
    """Where to load the learner from; None: begin with a fresh one."""
    speaker: StreamSpeaker
    training_history: TrainingHistory
    watch: OwnershipMonitor
    """Whether the training is still ours."""


@dataclass(frozen=True, slots=True)
class AlreadyComplete:
    """Nothing is left to do."""

    config: RunConfig
    manifest: Manifest


def open_training(
    emitter: Emitter,
    run_name: str,
    asked: RunConfig,
    run_folder: Path,
    *,
    clock: Callable[[], datetime],
    report: Callable[[str], None],
    overwrite: bool,
    takeover: bool,
    topic_prefix: str,
) -> OpenedTraining | AlreadyComplete:
    """Begin or continue. UsageError for other settings than recorded.

    CuaTrainError when somebody else trains it.
    """
    training_id = ids.training_id(run_name)
    subject = stream("training", training_id)
    # What dead processes of this host left in the spool belongs to the history that is read now.
    emitter.open_log(LOG_TIMEOUT_S)
    emitter.wait_shipped(LOG_TIMEOUT_S)
    states = resume_state.find_states(run_folder)
    newest = states[0][0] if states else None
    log_start = resume_state.bounds_to_json(emitter.lower_bounds())
    training_history = _read_training_history(emitter, training_id, newest, topic_prefix)
    history = training_history.of(subject)
    speaker = StreamSpeaker(subject, training_id, emitter)
    if history is None or not history.events:
        manifest = Manifest(
            run_name, 0, 0, 0, emitter.log.log_id, log_start, log_start, (), (), 0.0
        )
        ends = emitter.lower_bounds()
        ours = claim(
            emitter,
            Fact(
                subject,
                TrainingCreated(
                    run_name=run_name,
                    recipe=recipe(asked, run_folder),
                    total_steps=asked.num_steps,
                    config=asked.recorded(),
                ),
                training_id,
            ),
            StreamHistory(subject),
            resume_state.bounds_from_json(log_start),
        )
        speaker.statuses[("training", training_id)] = "pending"
        speaker.say(TrainingInitializing())
        return OpenedTraining(
            asked,
            0,
            manifest,
            None,
            speaker,
            training_history,
            OwnershipMonitor(emitter, ours, ends),
        )
    if newest is not None and newest.log_id != emitter.log.log_id:
        # The installation changed its log: offsets of the old one say nothing, the new one is read
        # from its beginning.
        states = [
            (replace(manifest, log_id=emitter.log.log_id, log_start={}, since={}), folder)
            for manifest, folder in states
        ]
    recorded = next(
        event.payload
        for event in reversed(history.events)
        if isinstance(event.payload, TrainingCreated | TrainingResumed)
    )
    config = _continued(asked, recorded.config)
    generation = recorded.generation if isinstance(recorded, TrainingResumed) else 0
    _refuse_living_writer(
        history.events[-1].envelope.time,
        history.position.source,
        emitter.source,
        clock(),
        run_name,
        takeover=takeover,
    )
    manifest, folder = _where(states, generation, emitter, run_name)
    steps_done = _steps_done(training_history, training_id, generation)
    if (
        history.statuses[("training", training_id)] == "completed"
        and not overwrite
        and config.num_steps <= max(steps_done, default=0)
    ):
        return AlreadyComplete(config, manifest)
    begun = bool(steps_done) or any(
        subject.startswith("evaluation/") for subject in training_history.histories
    )
    new_generation = (
        overwrite or (folder is None and begun) or manifest.step < max(steps_done, default=0)
    )
    if new_generation:
        kept_step = 0 if overwrite else manifest.step
        if overwrite:
            folder = None
        generation += 1
        evaluations = (
            tuple(one for one in manifest.evaluations if one.step <= kept_step) if kept_step else ()
        )
        manifest = replace(
            manifest,
            generation=generation,
            step=kept_step,
            evaluations=evaluations,
            pending=(),
            log_id=emitter.log.log_id,
        )
        report(
            f"generation {generation} begins after step {kept_step}; the steps after it stay,"
            " marked superseded"
        )
    ends = emitter.lower_bounds()
    ours = claim(
        emitter,
        Fact(
            subject,
            TrainingResumed(
                generation=generation,
                current_step=manifest.step,
                total_steps=config.num_steps,
                recipe=recipe(config, run_folder),
                config=config.recorded(),
                status_message=f"continues after step {manifest.step}",
            ),
            training_id,
        ),
        history,
        resume_state.bounds_from_json(manifest.log_start),
    )
    speaker.statuses.update(history.statuses)
    speaker.statuses[("training", training_id)] = "initializing"
    closed = training_history.close_orphans(emitter, training_id, clock)
    report(
        f"training {run_name!r} continues after step {manifest.step} of {config.num_steps};"
        f" {closed} rollouts of the dead process closed"
    )
    if new_generation:
        _supersede(training_history, speaker, emitter, training_id, generation - 1, manifest.step)
    for pending in manifest.pending:
        payload = BY_TYPE[(str(pending["type"]), int(str(pending["version"])))].model_validate(
            pending["data"]
        )
        if _is_missing(payload, speaker, history.events):
            speaker.say(payload)
    return OpenedTraining(
        config,
        generation,
        manifest,
        folder,
        speaker,
        training_history,
        OwnershipMonitor(emitter, ours, ends),
    )


def _is_missing(payload: object, speaker: StreamSpeaker, events: Sequence[Event]) -> bool:
    """Whether a manifest's event did not reach the log."""
    step_id = getattr(payload, "step_id", None)
    if getattr(payload, "STATUS", None) is not None:
        return speaker.status_of("step", step_id) != "completed" if step_id else True
    return not any(
        type(event.payload) is type(payload) and getattr(event.payload, "step_id", None) == step_id
        for event in events
    )


def _read_training_history(
    emitter: Emitter, training_id: UUID, newest: Manifest | None, topic_prefix: str
) -> TrainingHistory:
    """Everything of the training that is needed to go on.

    Its own stream whole, the others since the newest state.
    """
    # Bounds of another log say nothing about this one.
    known = newest is not None and newest.log_id == emitter.log.log_id
    return read_training_history(
        emitter.log,
        training_id,
        topic_prefix=topic_prefix,
        start=(
            resume_state.bounds_from_json(newest.log_start) if newest is not None and known else {}
        ),
        since=resume_state.bounds_from_json(newest.since) if newest is not None and known else {},
    )


def _continued(asked: RunConfig, recorded: dict[str, JsonValue]) -> RunConfig:
    """The recorded configuration with what was asked for explicitly and may change.

    UsageError lists what may not.
    """
    explicit = {name: value for name, value in asked.recorded().items() if name in asked.explicit}
    conflicts = differences({name: recorded.get(name) for name in explicit}, explicit)
    if conflicts:
        message = (
            "this training was begun with other settings; leave these out to continue it, choose"
            " another --training-name, or say --behavior-if-log-dir-exists overwrite: "
            + "; ".join(conflicts)
        )
        raise UsageError(message)
    return read_config({**recorded, **explicit})


def _refuse_living_writer(
    last: datetime, holder: str, source: str, now: datetime, run_name: str, *, takeover: bool
) -> None:
    host = holder.split("/")[2] if holder.startswith("//") else ""
    is_here = host == source.split("/")[2]
    if not is_here and not takeover and now - last < timedelta(seconds=TAKEOVER_AFTER_S):
        message = (
            f"training {run_name!r} was alive on {host or holder}"
            f" {(now - last).total_seconds():.0f} s ago; stop it there, wait {TAKEOVER_AFTER_S:.0f}"
            " s after its last heartbeat, or say --takeover"
        )
        raise CuaTrainError(message)


def _where(
    states: list[tuple[Manifest, Path]], generation: int, emitter: Emitter, run_name: str
) -> tuple[Manifest, Path | None]:
    """The newest whole state of the generation (or of one before it), or the beginning."""
    for manifest, folder in states:
        if manifest.generation <= generation:
            return manifest, folder
    ends = resume_state.bounds_to_json(emitter.lower_bounds())
    return Manifest(run_name, generation, 0, 0, emitter.log.log_id, {}, ends, (), (), 0.0), None


def _steps_done(training_history: TrainingHistory, training_id: UUID, generation: int) -> list[int]:
    history = training_history.of(stream("training", training_id))
    if history is None:
        return []
    created = [event.payload for event in history.events if isinstance(event.payload, StepCreated)]
    return [
        step.step
        for step in created
        if step.generation == generation
        and history.statuses.get(("step", step.step_id)) == "completed"
    ]


def _supersede(
    training_history: TrainingHistory,
    speaker: StreamSpeaker,
    emitter: Emitter,
    training_id: UUID,
    generation: int,
    kept_step: int,
) -> None:
    """Mark what the older generation did after the step that is kept."""
    history = training_history.of(speaker.subject)
    if history is None:
        return
    payloads = [event.payload for event in history.events]
    groups = [payload for payload in payloads if isinstance(payload, GroupCreated)]
    for step in payloads:
        if (
            isinstance(step, StepCreated)
            and step.generation == generation
            and step.step > kept_step
        ):
            of_step = tuple(group.group_id for group in groups if group.source_id == step.step_id)
            speaker.say(StepSuperseded(step_id=step.step_id, group_ids=of_step))
    for subject, evaluation in training_history.histories.items():
        created = (
            evaluation.events[0].payload
            if subject.startswith("evaluation/") and evaluation.events
            else None
        )
        if (
            not isinstance(created, EvaluationCreated)
            or created.kind != "scheduled"
            or created.generation != generation
        ):
            continue
        if (created.step or 0) > kept_step:
            emitter.resume_stream(
                subject, position=evaluation.position, statuses=evaluation.statuses
            )
            of_evaluation = tuple(
                event.payload.group_id
                for event in evaluation.events
                if isinstance(event.payload, GroupCreated)
                and event.payload.source_id == stream_owner(subject)
            )
            emitter.emit(
                Fact(
                    subject,
                    EvaluationSuperseded(kind=created.kind, group_ids=of_evaluation),
                    training_id,
                )
            )
            emitter.forget_stream(subject)
