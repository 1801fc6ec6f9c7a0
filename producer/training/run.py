"""`run(config)`: one process's work on a training, from its name to its summary."""

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic

from producer.blobs import open_blobs
from producer.config import RunConfig, check_effects, fields_without_network
from producer.config.reward import configured_reward
from producer.emit import Emitter
from producer.emit.heartbeat import HEARTBEAT_S
from producer.errors import NotFoundError, UsageError
from producer.policy.learner import Learner
from producer.resume import resume_state
from producer.resume.foreign_drops import ForeignDrops
from producer.resume.open_training import (
    AlreadyComplete,
    OpenedTraining,
    RecordedTraining,
    open_training,
)
from producer.resume.orphans import end_abandoned
from producer.resume.resume_state import Manifest
from producer.resume.run_folder import (
    check_not_elsewhere,
    find_run_folder,
    link_run_folder,
    training_in,
)
from producer.resume.training_lock import TrainingLock, training_lock
from producer.rollouts.engine import EnvironmentFactory
from producer.tasks.split import source_name, split_of
from producer.training.evaluation_plans import EvaluatedTasks
from producer.training.loaded import Loaded, load, load_policy
from producer.training.loop import TrainingLoop, save_checkpoint
from producer.training.open_policy import (
    built_policy,
    check_reads_threads,
    open_policy,
    with_adapter_settings,
    with_cpu_threads,
)
from producer.training.preflight import check_folders, check_services, is_unused
from producer.training.progress import ProgressTracker
from producer.training.progress_bars import progress_bars
from producer.training.progress_events import ProgressEvents
from producer.training.recorded_end import recorded_end
from producer.training.redo import remake_state
from producer.training.rubric import make_rubric
from producer.training.run_files import RunFiles, log_file, open_run_files
from producer.training.session import Session
from producer.training.stated_tasks import state_tasks, statements
from producer.training.summary import Summary, summarise
from producer.training.tracking import mirrored
from producer.training_name import new_training_name
from producer.warm_up.training import WarmUpTraining
from schemas import ids
from schemas.checkpoint import CheckpointSaved
from schemas.installation import Installation, read_installation
from schemas.task import TaskStated
from schemas.training import TrainingCompleted, TrainingStarted

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
    """Train to the end of `config`, or continue the training of its name. Blocks.

    Raises the errors of `producer.errors`; StopRequestedError after `stop` was set: the training is
    cancelled and can be continued. `on_open(name, folder)` is called once the training is recorded
    in the log, so that its name alone continues it. `takeover`: continue although another
    process seems to train it; that one stops when it notices.
    """
    config = with_cpu_threads(with_adapter_settings(config or RunConfig()))
    installation = installation or read_installation(os.environ)
    check_folders(installation, config)
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
        return summarise(states[0].manifest, status="skipped", seconds=0.0, folder=folder)
    if behavior != "overwrite":
        check_not_elsewhere(installation, name, folder)
    begun_s = monotonic()
    loaded: list[Loaded] = []
    if is_unused(installation):
        # Opening the log makes files: what can be refused is refused before.
        check_effects(config, config.explicit)
        loaded.append(load(config, installation))
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
            loaded[:] = [load(config, installation)]
        check_reads_threads(config, asked.explicit)
        return statements(loaded[0].tasks)

    with (
        training_lock(folder, name, takeover=takeover) as lock,
        Emitter.open(installation, clock=clock, stop=stop) as emitter,
    ):
        opened = open_training(
            emitter,
            name,
            config,
            folder,
            clock=clock,
            overwrite=behavior == "overwrite",
            takeover=takeover,
            stop=stop,
            before_claim=load_before_claim,
            fetch_drops=ForeignDrops(installation, os.environ, stop=stop).fetch,
            remake_state=partial(_remake_state, installation, folder),
        )
        link_run_folder(installation, name, folder)
        if on_open is not None:
            on_open(name, folder)
        if isinstance(opened, AlreadyComplete):
            _log_complete(name, opened)
            summary = summarise(opened.manifest, status="completed", seconds=0.0, folder=folder)
        else:
            process = _Process(
                opened=opened,
                loaded=loaded[0],
                emitter=emitter,
                name=name,
                folder=folder,
                installation=installation,
                clock=clock,
                stop=stop or threading.Event(),
                lock=lock,
            )
            with log_file(folder), mirrored(opened.plan.config, name, installation):
                manifest = process.run(heartbeat_s)
            seconds = monotonic() - begun_s
            summary = summarise(manifest, status="completed", seconds=seconds, folder=folder)
            summary = replace(summary, leaked_devices=process.num_leaked)
    return replace(summary, unshipped_events=emitter.num_unshipped)


def _remake_state(
    installation: Installation, folder: Path, recorded: RecordedTraining, config: RunConfig
) -> bool:
    """Make the newest step's lost state again; False: its steps have to be trained anew."""
    if config.replay_sessions:
        # The sessions that its prompts began with were in the state alone.
        return False
    policy = load_policy(config, installation)
    if policy is None:
        return False
    read_blob = open_blobs(installation.blobs_url).get
    try:
        return remake_state(recorded, config, policy[0], folder, read_blob)
    except NotFoundError as error:
        logger.warning("%s", error)
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


@dataclass(slots=True, kw_only=True)
class _Process:
    """One process's work on a training that it owns; used once."""

    opened: OpenedTraining[RunConfig]
    loaded: Loaded
    emitter: Emitter
    name: str
    folder: Path
    installation: Installation
    clock: Callable[[], datetime]
    stop: threading.Event
    lock: TrainingLock
    num_leaked: int = 0
    """Devices that were not released; known at the end."""

    def run(self, heartbeat_s: float) -> Manifest:
        """Train. The training's end is always emitted, unless the log broke or it was lost."""
        resume_state.write_config(self.folder, self.opened.plan.config.recorded())
        with recorded_end(self.opened, self.clock, self.stop, heartbeat_s):
            return self._train()

    def _train(self) -> Manifest:
        loop = self._prepare()
        try:
            with progress_bars(loop.session.progress.tracker):
                loop.run()
        finally:
            # Named before the process ends, however it ends.
            loop.session.left_devices.seal()
            self.num_leaked = loop.session.left_devices.num_leaked
        progress = loop.session.progress
        progress.update_elapsed()
        only_baseline = self.opened.plan.config.baseline_only
        self.opened.stream.emit(
            TrainingCompleted(
                current_step=loop.manifest.step,
                progress=progress.tracker.finished(),
                ended_at=self.clock(),
                status_message="only the baseline was asked for" if only_baseline else None,
            )
        )
        self.emitter.flush()
        return loop.manifest

    def _prepare(self) -> TrainingLoop:
        plan, stream = self.opened.plan, self.opened.stream
        config = plan.config
        _, (tasks, eval_tasks, ask_model), policy, step_scorer = self.loaded
        end_abandoned(self.installation, self.emitter, self.clock, self.stop)
        learner, make_environment = policy or self._open_demo_policy(config)
        if plan.state_folder is not None:
            learner.load_state(plan.state_folder)
        stated = state_tasks(stream, tasks)
        stated_eval = stated if eval_tasks is tasks else state_tasks(stream, eval_tasks)
        files = open_run_files(self.folder, self.opened)
        manifest = self._first_state(learner, files)
        stream.emit(TrainingStarted(current_step=manifest.step))
        session = Session(
            config=config,
            run_name=self.name,
            training_id=ids.training_id(self.name),
            generation=plan.generation,
            emitter=self.emitter,
            stream=stream,
            learner=learner,
            make_environment=make_environment,
            ask_model=ask_model,
            history=self.opened.history,
            clock=self.clock,
            stop=self.stop,
            read_blob=open_blobs(self.installation.blobs_url).get,
            progress=ProgressEvents(stream, self._progress_so_far(config), manifest.step),
            rubric=make_rubric(config, learner, step_scorer),
            reward=configured_reward(config),
            past_sessions=manifest.past_sessions,
            moving_baseline=manifest.moving_baseline,
        )
        seeds_matter = config.agent.seeds_matter
        evaluated = EvaluatedTasks(
            stated_eval,
            split_of(tasks, eval_tasks, seeds_matter=seeds_matter),
            source_name(config.tasks if config.eval_tasks is None else config.eval_tasks),
            seeds_matter,
        )
        return TrainingLoop(
            *(session, self.folder, stated, evaluated, manifest),
            check_owner=self.lock.check,
            files=files,
        )

    def _progress_so_far(self, config: RunConfig) -> ProgressTracker:
        """Begins with what an earlier process stated of the same steps: progress never falls."""
        history = self.opened.history
        tracker = ProgressTracker(config.max_concurrent_rollouts)
        tracker.highest_percent = history.stated_percent(
            history.of(self.opened.stream.subject), self.opened.plan.generation, config.num_steps
        )
        return tracker

    def _open_demo_policy(self, config: RunConfig) -> tuple[Learner, EnvironmentFactory]:
        installation = self.installation
        with WarmUpTraining(
            self.emitter,
            self.clock,
            installation.open_dir,
            self.stop,
            plan=built_policy(config).plan(),
            waiting=self.opened.stream,
        ) as warm_up:
            return open_policy(
                config, installation.policies_dir, warm_up.on_progress, warm_up.on_wait
            )

    def _first_state(self, learner: Learner, files: RunFiles) -> Manifest:
        """Save the state that the first step begins from, unless it was loaded from there."""
        plan = self.opened.plan
        manifest = replace(plan.manifest, generation=plan.generation)
        is_loaded = plan.state_folder is not None and plan.manifest.step > 0
        # A generation that begins now has loaded the state of the one before it.
        is_own = plan.manifest.generation == plan.generation and not plan.begins_generation
        if is_loaded and is_own:
            # A kill may have come between a state and the end of the ones before it.
            resume_state.drop_old_states(self.folder, plan.generation, manifest.step)
            return manifest
        self.lock.check()
        folder = resume_state.begin_state(self.folder, plan.generation, manifest.step)
        learner.save_state(folder)
        manifest = replace(
            manifest,
            policy_version=learner.version,
            pending=(),
            claim_epoch=self.opened.stream.point.epoch,
            claim_source=self.emitter.source,
        )
        resume_state.commit_state(folder, manifest)
        has_checkpoint = plan.generation in self._checkpointed_generations()
        if plan.config.save_every and manifest.step == 0 and not has_checkpoint:
            checkpoint = save_checkpoint(self.folder, learner, plan.generation, 0, None)
            self.opened.stream.emit(checkpoint)
            files.checkpoint(checkpoint)
        return manifest

    def _checkpointed_generations(self) -> set[int]:
        """Generations whose first state is a checkpoint already."""
        payloads = self.opened.history.payloads_of(self.opened.stream.subject)
        saved = (payload for payload in payloads if isinstance(payload, CheckpointSaved))
        return {checkpoint.generation for checkpoint in saved if checkpoint.step == 0}
