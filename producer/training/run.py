"""`run(config)`: what one process does for a training, from opening it to its summary."""

import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic

from producer.algorithms.controls import BLANK_SCREENS
from producer.blobs import open_blobs
from producer.config import RunConfig, check_effects, fields_without_network
from producer.emit.heartbeat import HEARTBEAT_S
from producer.errors import UsageError
from producer.log.event_log import EventLog
from producer.policy.learner import Learner
from producer.resume import resume_state
from producer.resume.open_training import AlreadyComplete
from producer.resume.recorded_training import RecordedTraining
from producer.resume.run_folder import (
    check_not_elsewhere,
    find_run_folder,
    training_in,
)
from producer.rollouts.engine import EnvironmentFactory
from producer.tasks.overlap import split_of
from producer.tasks.sources import source_name
from producer.training.evaluation import EvaluatedTasks
from producer.training.lifecycle import OwnedTraining, own_training
from producer.training.loaded import Loaded, load, state_tasks, statements
from producer.training.loop import TrainingLoop, save_checkpoint
from producer.training.open_policy import (
    built_policy,
    check_reads_threads,
    open_policy,
    with_adapter_settings,
    with_cpu_threads,
)
from producer.training.preflight import (
    check_folders,
    check_services,
    is_unused,
    log_idle_control,
    log_unread_fields,
    log_unused_keys,
)
from producer.training.progress import ProgressEvents, ProgressTracker
from producer.training.redo import restore_remote_state
from producer.training.rubric import make_rubric
from producer.training.session import Session
from producer.training.summary import Summary, summarise
from producer.training_name import new_training_name
from producer.warm_up.training import WarmUpTraining
from schemas import ids
from schemas.installation import Installation, read_installation
from schemas.task import TaskStated

logger = logging.getLogger(__name__)


def utc_now() -> datetime:
    """The clock of real runs."""
    return datetime.now(UTC)


def run(
    config: RunConfig | None = None,
    *,
    installation: Installation | None = None,
    clock: Callable[[], datetime] = utc_now,
    stop: threading.Event | None = None,
    on_open: Callable[[str, Path], None] | None = None,
    takeover: bool = False,
    heartbeat_s: float = HEARTBEAT_S,
) -> Summary:
    """Train to the end of `config`, or resume the training with its name. Blocks.

    `on_open(name, folder)` is called once the training is recorded in the log, from which point its
    name alone is enough to resume it. `takeover` resumes the training even if another process still
    seems to be running it; that process stops when it notices.

    Raises the errors of `producer.errors`. Setting `stop` cancels the training and raises
    StopRequestedError; a cancelled training can be resumed.
    """
    stop = stop or threading.Event()
    config = with_adapter_settings(config or RunConfig())
    installation = installation or read_installation(os.environ)
    check_folders(installation, config)
    log_unread_fields(config)
    log_idle_control(config)
    log_unused_keys(config, os.environ)
    known = training_in(config.log_path) if config.log_path is not None else None
    name = config.training_name or known or new_training_name(config.model_name, clock())
    config = config.named(name)
    folder = find_run_folder(installation, name, config.run_folder)
    behavior = config.behavior_if_log_dir_exists
    states = resume_state.find_states(folder)
    if states and behavior == "raise":
        message = f"training {name!r} exists in {folder}"
        ways = ("choose another --training-name", "another --behavior-if-log-dir-exists")
        raise UsageError(message, ways=ways)
    if states and behavior == "skip":
        summary = summarise(states[0].manifest, status="skipped", seconds=0.0, folder=folder)
        recorded = resume_state.read_run_config(folder)
        return replace(summary, control=_named_control(recorded))
    if not states or behavior == "overwrite":
        # A resumed training has its thread count recorded; probing the machine imports torch.
        config = with_cpu_threads(config)
    if behavior != "overwrite":
        check_not_elsewhere(installation, name, folder)
    begun_s = monotonic()
    loaded: list[Loaded] = []
    if is_unused(installation):
        # Opening the log creates files, so refuse a bad configuration before that.
        check_effects(config, config.explicit)
        loaded.append(load(config, installation, stop))
        check_services(installation, stop)

    asked = config

    def load_before_claim(config: RunConfig) -> list[TaskStated]:
        check_effects(config, asked.explicit)
        if unread := fields_without_network(config, asked.explicit):
            logger.warning(
                "the policy %s has no network: %s have no effect",
                *(config.model_name, ", ".join(unread)),
            )
        if not loaded or loaded[0].config != config:
            loaded[:] = [load(config, installation, stop)]
        check_reads_threads(config, asked.explicit)
        return statements(loaded[0].tasks)

    owning = own_training(
        installation,
        name,
        folder,
        config,
        clock=clock,
        stop=stop,
        takeover=takeover,
        on_open=on_open,
        overwrite=behavior == "overwrite",
        before_claim=load_before_claim,
        restore_state=partial(_restore_state, folder),
    )
    with owning as (emitter, owned):
        if isinstance(owned, AlreadyComplete):
            _log_complete(name, owned)
            summary = summarise(owned.manifest, status="completed", seconds=0.0, folder=folder)
        else:
            with owned.working(owned.config, heartbeat_s):
                num_leaked = _train(owned, loaded[0])
            seconds = monotonic() - begun_s
            summary = summarise(owned.manifest, status="completed", seconds=seconds, folder=folder)
            summary = replace(summary, leaked_devices=num_leaked)
    return replace(
        summary,
        unshipped_events=emitter.num_unshipped,
        control=_named_control(owned.config.recorded()),
    )


def _restore_state(
    folder: Path, recorded: RecordedTraining, config: RunConfig, log: EventLog
) -> bool:
    """Restore the lost state of the newest step if a training service has it; whether it had."""
    if config.provider == "tinker" and restore_remote_state(
        recorded.read_whole(log), config.model_name, folder
    ):
        return True
    logger.warning(
        "the state after step %d is missing in %s; training continues from the newest saved state"
        " there, or from the beginning if there is none",
        *(max(recorded.lineage.steps), folder),
    )
    return False


def _log_complete(name: str, complete: AlreadyComplete[RunConfig]) -> None:
    step = complete.manifest.step
    if complete.config.baseline_only:
        logger.info(
            "the baseline of training %r is evaluated; without baseline_only it is trained", name
        )
        return
    logger.info(
        "training %r is already complete after step %d; a larger num_steps continues it",
        *(name, step),
    )


def _train(owned: OwnedTraining[RunConfig], loaded: Loaded) -> int:
    """Train to the end. Returns the number of devices that were not released."""
    loop = _prepare(owned, loaded)
    session = loop.session
    try:
        loop.run()
    finally:
        # Reports leaked devices before the process ends, even after an error.
        session.left_devices.seal()
    session.progress.update_elapsed()
    only_baseline = owned.config.baseline_only
    owned.complete(
        session.progress.tracker.finished(),
        "only the baseline was asked for" if only_baseline else None,
    )
    return session.left_devices.num_leaked


def _prepare(owned: OwnedTraining[RunConfig], loaded: Loaded) -> TrainingLoop:
    config, stream = owned.config, owned.stream
    _, (tasks, eval_tasks, ask_model), policy, step_scorer = loaded
    learner, make_environment = policy or _open_demo_policy(owned)
    owned.load(learner)
    stated = state_tasks(stream, tasks)
    stated_eval = stated if eval_tasks is tasks else state_tasks(stream, eval_tasks)
    save_first = partial(save_checkpoint, owned.folder, learner, owned.generation, 0, None)
    owned.begin(learner, save_checkpoint=save_first if config.save_every else None)
    session = Session(
        config=config,
        run_name=owned.name,
        training_id=ids.training_id(owned.name),
        generation=owned.generation,
        emitter=owned.emitter,
        stream=stream,
        learner=learner,
        make_environment=make_environment,
        ask_model=ask_model,
        history=owned.opened.history,
        clock=owned.clock,
        stop=owned.stop,
        read_blob=open_blobs(owned.installation).get,
        installation=owned.installation,
        progress=ProgressEvents(
            stream, ProgressTracker(config.concurrent_rollouts), owned.manifest.step
        ),
        rubric=make_rubric(config, learner, step_scorer),
        reward=config.make_reward(),
        moving_baseline=owned.manifest.moving_baseline,
    )
    seeds_matter = config.agent.seeds_matter
    evaluated = EvaluatedTasks(
        stated_eval,
        split_of(tasks, eval_tasks, seeds_matter=seeds_matter),
        source_name(config.tasks if config.eval_tasks is None else config.eval_tasks),
        seeds_matter,
    )
    return TrainingLoop(owned, session, stated, evaluated)


def _named_control(recorded: Mapping[str, object]) -> str:
    """The `--control` name of the control that the recorded configuration uses."""
    control = str(recorded.get("control", "none"))
    if control == "none" and recorded.get("ablate", "none") != "none":
        return BLANK_SCREENS
    return control


def _open_demo_policy(owned: OwnedTraining[RunConfig]) -> tuple[Learner, EnvironmentFactory]:
    config, installation = owned.config, owned.installation
    with WarmUpTraining(
        owned.emitter,
        owned.clock,
        installation.open_dir,
        owned.stop,
        plan=built_policy(config).plan(),
        waiting=owned.stream,
    ) as warm_up:
        return open_policy(config, installation.policies_dir, warm_up.on_progress, warm_up.on_wait)
