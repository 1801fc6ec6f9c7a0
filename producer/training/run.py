"""`run(config)`: one process's whole life with a training, from its name to its summary."""

import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from producer.blobs import open_blobs
from producer.config import RunConfig
from producer.demo_policy.warm_up_training import WarmUpFacts
from producer.emit import Emitter
from producer.emit.ownership import ClaimLostError
from producer.errors import LogBrokenError, StopRequestedError, UsageError
from producer.resume import resume_state
from producer.resume.open_training import AlreadyComplete, OpenedTraining, open_training
from producer.resume.orphans import end_abandoned
from producer.resume.resume_state import Manifest
from producer.resume.training_lock import training_lock
from producer.rollouts.plan import StatedTask
from producer.task import Task
from producer.tasks.sources import load_tasks
from producer.tasks.statements import task_facts
from producer.training.heartbeat import HEARTBEAT_S, heartbeat
from producer.training.loop import TrainingLoop, save_checkpoint, success_before_and_after
from producer.training.open_policy import open_policy
from producer.training.progress import ProgressTracker
from producer.training.session import Session
from schemas import ids
from schemas.base import Payload
from schemas.checkpoint import CheckpointSaved
from schemas.installation import Installation, read_installation
from schemas.training import TrainingCancelled, TrainingCompleted, TrainingFailed, TrainingStarted

CLOSE_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run came to; the last line of `cua-train run --json`."""

    training_name: str
    training_id: str
    status: str
    steps: int
    success_before: float | None
    success_after: float | None
    standard_error_before: float | None
    standard_error_after: float | None
    episodes: int
    seconds: float
    generation: int
    log_path: str


def new_training_name(config: RunConfig, now: datetime) -> str:
    """A name that nobody has: policy, time, 16 random bits."""
    policy = Path(config.model_name).name.lower()[:40]
    return f"{policy}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def utc_now() -> datetime:
    """The clock of real runs."""
    return datetime.now(UTC)


def run(
    config: RunConfig | None = None,
    *,
    installation: Installation | None = None,
    clock: Callable[[], datetime] = utc_now,
    stop: threading.Event | None = None,
    report: Callable[[str], None] = lambda line: None,  # noqa: ARG005  # silence is the default
    on_open: Callable[[str, Path], None] = lambda name, folder: None,  # noqa: ARG005  # nobody else needs to know
    takeover: bool = False,
    heartbeat_s: float = HEARTBEAT_S,
) -> Summary:
    """Train to the end of `config`, or continue the training of its name. Blocks.

    Errors are `producer.errors`.

    `stop` set: the run stops in order, its training is cancelled and can be continued;
    StopRequestedError. `on_open` gets the training's name and folder once this process holds its
    lock.
    """
    config = config or RunConfig()
    installation = installation or read_installation(os.environ)
    name = config.training_name or new_training_name(config, clock())
    config = config.named(name)
    folder = config.log_path or installation.runs_dir / name
    behavior = config.behavior_if_log_dir_exists
    if behavior in {"raise", "skip"} and resume_state.find_states(folder):
        if behavior == "raise":
            message = (
                f"training {name!r} exists in {folder}; choose another --training-name or another"
                " --behavior-if-log-dir-exists"
            )
            raise UsageError(message)
        manifest = resume_state.find_states(folder)[0][0]
        return _summary(name, "skipped", manifest, 0.0, folder)
    begun_s = monotonic()
    with (
        training_lock(folder, name),
        Emitter.open(installation, clock=clock, say=report) as emitter,
    ):
        on_open(name, folder)
        opened = open_training(
            emitter,
            name,
            config,
            folder,
            clock=clock,
            report=report,
            overwrite=behavior == "overwrite",
            takeover=takeover,
            topic_prefix=installation.topic_prefix,
        )
        if isinstance(opened, AlreadyComplete):
            report(
                f"training {name!r} is complete after step {opened.manifest.step}; ask for more"
                " with --num-steps"
            )
            return _summary(name, "completed", opened.manifest, 0.0, folder)
        resume_state.write_config(folder, opened.config.recorded())
        stop = stop or threading.Event()
        lost: list[ClaimLostError] = []

        def on_lost(error: ClaimLostError) -> None:
            lost.append(error)
            stop.set()

        with heartbeat(emitter, ids.training_id(name), opened.watch, on_lost, heartbeat_s):
            manifest = _train(
                opened, emitter, name, folder, installation, clock, stop, report, lost
            )
        return _summary(name, "completed", manifest, monotonic() - begun_s, folder)


def _train(
    opened: OpenedTraining,
    emitter: Emitter,
    name: str,
    folder: Path,
    installation: Installation,
    clock: Callable[[], datetime],
    stop: threading.Event,
    report: Callable[[str], None],
    lost: Sequence[ClaimLostError],
) -> Manifest:
    """Everything between the claim and the training's end, which is always stated unless the log is broken."""
    speaker = opened.speaker
    try:
        loop = _prepare(opened, emitter, name, folder, installation, clock, stop, report)
        loop.run()
        session = loop.session
        session.tracker.elapsed_s = monotonic() - session.begun_s
        speaker.say(
            TrainingCompleted(
                current_step=loop.manifest.step,
                progress=session.tracker.finished(),
                ended_at=clock(),
            )
        )
        emitter.flush()
    except StopRequestedError:
        if lost:
            # Whatever this process said of the training now would be refused by every reader.
            raise lost[0] from None
        speaker.say(
            TrainingCancelled(
                status_message="stopped on request; the same command continues it", ended_at=clock()
            )
        )
        raise
    except LogBrokenError:
        raise
    except Exception as error:
        speaker.say(
            TrainingFailed(
                error_message=f"{type(error).__name__}: {error}"[:2000], ended_at=clock()
            )
        )
        raise
    return loop.manifest


def _prepare(
    opened: OpenedTraining,
    emitter: Emitter,
    name: str,
    folder: Path,
    installation: Installation,
    clock: Callable[[], datetime],
    stop: threading.Event,
    report: Callable[[str], None],
) -> TrainingLoop:
    config = opened.config
    tasks = _judged(load_tasks(config.tasks), "tasks", config.max_turns)
    eval_tasks = (
        _judged(load_tasks(config.eval_tasks), "eval_tasks", config.max_turns)
        if config.eval_tasks is not None
        else tasks
    )
    end_abandoned(installation, emitter, clock)
    with WarmUpFacts(emitter, clock, config, installation.open_dir, stop, report) as warm_up:
        learner, make_environment = open_policy(
            config, installation.policies_dir, warm_up.on_progress
        )
    if opened.state_folder is not None:
        learner.load_state(opened.state_folder)
    speaker = opened.speaker
    stated = {task.task_id: state_task(speaker.say, task) for task in (*tasks, *eval_tasks)}
    manifest = replace(opened.manifest, generation=opened.generation)
    if (
        opened.state_folder is None
        or opened.manifest.generation != opened.generation
        or manifest.step == 0
    ):
        state_folder = resume_state.begin_state(folder, opened.generation, manifest.step)
        learner.save_state(state_folder)
        manifest = replace(manifest, policy_version=learner.version, pending=())
        resume_state.commit_state(state_folder, manifest)
        if (
            config.save_every
            and manifest.step == 0
            and opened.generation not in _checkpointed(opened)
        ):
            speaker.say(save_checkpoint(folder, learner, opened.generation, 0, None))
    speaker.say(TrainingStarted(current_step=manifest.step))
    session = Session(
        config=config,
        run_name=name,
        training_id=ids.training_id(name),
        generation=opened.generation,
        emitter=emitter,
        learner=learner,
        make_environment=make_environment,
        training_history=opened.training_history,
        speaker=speaker,
        clock=clock,
        stop=stop,
        read_blob=open_blobs(installation.blobs_url).get,
        report=report,
        tracker=ProgressTracker(config.max_concurrent_rollouts),
        current_step=manifest.step,
    )
    return TrainingLoop(
        session,
        folder,
        [stated[task.task_id] for task in tasks],
        [stated[task.task_id] for task in eval_tasks],
        manifest,
    )


def _checkpointed(opened: OpenedTraining) -> set[int]:
    """Generations whose beginning was kept as a checkpoint already."""
    history = opened.training_history.of(opened.speaker.subject)
    payloads = [event.payload for event in history.events] if history else []
    return {
        payload.generation
        for payload in payloads
        if isinstance(payload, CheckpointSaved) and payload.step == 0
    }


def _judged(tasks: Sequence[Task], field: str, max_turns: int) -> list[Task]:
    """The tasks that can be judged; UsageError when none can."""
    judged = [task for task in tasks if task.is_judged]
    if not judged:
        message = (
            f"{field}: none of the {len(tasks)} tasks can be judged; see cua-train tasks list (at"
            f" most {max_turns} turns each)"
        )
        raise UsageError(message)
    return judged


def state_task(say: Callable[[Payload], None], task: Task) -> StatedTask:
    """State a task and its validator in the log; any training may, as often as it likes."""
    stated, validator = task_facts(task)
    say(stated)
    if validator is not None:
        say(validator)
    return StatedTask(task, stated.id, None if validator is None else validator.id)


def _summary(name: str, status: str, manifest: Manifest, seconds: float, folder: Path) -> Summary:
    figures: Mapping[str, float | int | None] = success_before_and_after(manifest.evaluations)
    return Summary(
        training_name=name,
        training_id=str(ids.training_id(name)),
        status=status,
        steps=manifest.step,
        seconds=round(seconds, 3),
        generation=manifest.generation,
        log_path=str(folder),
        **figures,  # type: ignore[arg-type]  # the six figures of the same names
    )


def summary_json(summary: Summary) -> dict[str, object]:
    """As `--json` prints it."""
    return asdict(summary)
