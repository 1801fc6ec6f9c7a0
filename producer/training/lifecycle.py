"""The lifecycle of a training, RL or supervised: claim, begin, save steps, end.

The caller decides what is trained and how a step is made. A state is on disk before the events of
its step are emitted: its manifest contains them, and a process that resumes emits them again.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, Protocol

from producer.emit import Emitter, StreamWriter
from producer.emit.heartbeat import heartbeat
from producer.emit.ownership import ClaimLostError
from producer.errors import LogBrokenError, StopRequestedError, TakenOverError
from producer.resume import resume_state
from producer.resume.open_training import AlreadyComplete, ConfigT, OpenedTraining, open_training
from producer.resume.orphans import end_abandoned
from producer.resume.resume_state import EvaluationSummary, Manifest
from producer.resume.run_folder import link_run_folder
from producer.resume.training_lock import TrainingLock, training_lock
from producer.training.run_files import RunFiles, log_file, open_run_files
from producer.training.tracking import Tracked, mirrored
from schemas.base import Payload, Progress
from schemas.checkpoint import CheckpointSaved
from schemas.installation import Installation
from schemas.step import StepFinished
from schemas.training import TrainingCancelled, TrainingCompleted, TrainingFailed, TrainingStarted


class Trained(Protocol):
    """A policy with its optimiser."""

    @property
    def version(self) -> int:
        """Number of updates so far."""

    def save_state(self, folder: Path) -> None:
        """Write everything the next step needs to an existing folder, synced to disk."""

    def load_state(self, folder: Path) -> None:
        """Restore what `save_state` wrote, bit for bit."""


@dataclass(slots=True, kw_only=True)
class OwnedTraining(Generic[ConfigT]):
    """A training that this process owns. Use from one thread."""

    name: str
    folder: Path
    installation: Installation
    opened: OpenedTraining[ConfigT]
    emitter: Emitter
    lock: TrainingLock
    clock: Callable[[], datetime]
    stop: threading.Event
    manifest: Manifest = field(init=False)
    """Manifest of the newest state; replaced after every step and evaluation."""
    files: RunFiles = field(init=False)

    @property
    def config(self) -> ConfigT:
        """The configuration as recorded."""
        return self.opened.plan.config

    @property
    def generation(self) -> int:
        """Generation of the steps that this process trains."""
        return self.opened.plan.generation

    @property
    def stream(self) -> StreamWriter:
        """The training's stream."""
        return self.opened.stream

    @contextmanager
    def working(self, tracked: Tracked, heartbeat_s: float) -> Iterator[None]:
        """Send heartbeats while the block trains, and emit its cancellation or failure.

        The block itself emits completion. If another writer takes over the training, `stop` is set
        and the block's error becomes ClaimLostError, because readers would refuse further events.
        """
        lost: list[ClaimLostError] = []

        def on_lost(error: ClaimLostError) -> None:
            lost.append(error)
            self.stop.set()

        beating = heartbeat(self.stream, self.opened.monitor, on_lost, heartbeat_s)
        with log_file(self.folder), mirrored(tracked, self.name, self.installation):
            resume_state.write_config(self.folder, self.config.recorded())
            with beating, self._end_recorded(lost):
                end_abandoned(self.installation, self.emitter, self.clock, self.stop)
                yield

    @contextmanager
    def _end_recorded(self, lost: Sequence[ClaimLostError]) -> Iterator[None]:
        try:
            yield
        except StopRequestedError:
            if lost:
                raise lost[0] from None
            message = "stopped on request; the same command continues it"
            self.stream.emit(TrainingCancelled(status_message=message, ended_at=self.clock()))
            raise
        except (LogBrokenError, TakenOverError):
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}"[:2000]
            self.stream.emit(TrainingFailed(error_message=message, ended_at=self.clock()))
            raise

    def load(self, trained: Trained) -> None:
        """Restore the state from which the plan begins, if there is one."""
        if self.opened.plan.state_folder is not None:
            trained.load_state(self.opened.plan.state_folder)

    def begin(
        self,
        trained: Trained,
        evaluate: Callable[[], Sequence[EvaluationSummary]] = lambda: (),
        save_checkpoint: Callable[[], CheckpointSaved] | None = None,
    ) -> None:
        """Save the state from which the first step begins, unless it was loaded from there.

        `evaluate` runs before the first step if no earlier process ran it. `save_checkpoint` saves
        step 0; None: it is not kept.
        """
        plan = self.opened.plan
        self.files = open_run_files(self.folder, self.opened)
        self.manifest = replace(plan.manifest, generation=plan.generation)
        is_loaded = plan.state_folder is not None and plan.manifest.step > 0
        # A new generation has loaded the state of the previous one.
        is_own = plan.manifest.generation == plan.generation and not plan.begins_generation
        if is_loaded and is_own:
            # A kill may have come after a state was saved and before older ones were removed.
            resume_state.drop_old_states(self.folder, plan.generation, self.manifest.step)
        else:
            self.lock.check()
            folder = resume_state.begin_state(self.folder, plan.generation, self.manifest.step)
            trained.save_state(folder)
            evaluations = self.manifest.evaluations or tuple(evaluate())
            self.manifest = replace(
                self._claimed(evaluations), policy_version=trained.version, pending=()
            )
            resume_state.commit_state(folder, self.manifest)
            if save_checkpoint is not None and self.manifest.step == 0 and not self._has_first():
                self._emit([save_checkpoint()])
        self.stream.emit(TrainingStarted(current_step=self.manifest.step))

    def save_step(
        self,
        trained: Trained,
        step: int,
        payloads: Sequence[Payload],
        *,
        summaries: Sequence[EvaluationSummary] = (),
        **changes: Any,  # noqa: ANN401  # fields of a manifest
    ) -> None:
        """Save the state after `step`, manifest last, then emit the events that refer to it."""
        # Another process may own the folder by now.
        self.lock.check()
        folder = resume_state.begin_state(self.folder, self.generation, step)
        trained.save_state(folder)
        log = self.emitter.log
        changes.setdefault("since", resume_state.bounds_to_json(log.lower_bounds()))
        self.manifest = replace(
            self._claimed((*self.manifest.evaluations, *summaries)),
            step=step,
            policy_version=trained.version,
            log_id=log.log_id(),
            pending=tuple(resume_state.pending_to_json(payload) for payload in payloads),
            **changes,
        )
        # Whoever finds the manifest emits its events, so whatever they refer to must be in the log.
        self.emitter.flush()
        resume_state.commit_state(folder, self.manifest)
        self._emit(payloads)
        for summary in summaries:
            self.files.evaluation(summary)
        resume_state.drop_old_states(self.folder, self.generation, step)

    def keep_evaluation(self, summary: EvaluationSummary) -> None:
        """Add the summary to the newest state's manifest and to the run's files."""
        self.manifest = self._claimed((*self.manifest.evaluations, summary))
        self.lock.check()
        # Otherwise naming a complete training again would not show its last evaluation.
        resume_state.update_manifest(self.folder, self.manifest)
        self.files.evaluation(summary)

    def complete(self, progress: Progress, status_message: str | None = None) -> None:
        """Emit that the training is complete."""
        self.stream.emit(
            TrainingCompleted(
                current_step=self.manifest.step,
                progress=progress,
                ended_at=self.clock(),
                status_message=status_message,
            )
        )
        self.emitter.flush()

    def _claimed(self, evaluations: tuple[EvaluationSummary, ...]) -> Manifest:
        return replace(
            self.manifest,
            evaluations=evaluations,
            claim_epoch=self.stream.point.epoch,
            claim_source=self.emitter.source,
        )

    def _emit(self, payloads: Sequence[Payload]) -> None:
        for payload in payloads:
            self.stream.emit(payload)
        self.emitter.flush()
        steps = [payload for payload in payloads if isinstance(payload, StepFinished)]
        for number, finished in enumerate(steps, start=self.manifest.step - len(steps) + 1):
            self.files.step(number, finished)
        for payload in payloads:
            if isinstance(payload, CheckpointSaved):
                self.files.checkpoint(payload)

    def _has_first(self) -> bool:
        """Whether this generation's first state is already kept as a checkpoint."""
        saved = self.opened.history.own_payloads(CheckpointSaved)
        return any((item.generation, item.step) == (self.generation, 0) for item in saved)


@contextmanager
def own_training(
    installation: Installation,
    name: str,
    folder: Path,
    config: ConfigT,
    *,
    clock: Callable[[], datetime],
    stop: threading.Event,
    takeover: bool = False,
    on_open: Callable[[str, Path], None] | None = None,
    before_open: Callable[[Emitter], None] = lambda _emitter: None,
    **opening: Any,  # noqa: ANN401  # keywords of `open_training`
) -> Iterator[tuple[Emitter, OwnedTraining[ConfigT] | AlreadyComplete[ConfigT]]]:
    """Begin or resume the training, which this process owns inside the block.

    `on_open` is called once the training is in the log; `before_open` is called before it is
    looked up, while its folder's lock is held. Raises as `open_training`.
    """
    with (
        training_lock(folder, name, takeover=takeover) as lock,
        Emitter.open(installation, clock=clock, stop=stop) as emitter,
    ):
        before_open(emitter)
        opened = open_training(
            emitter,
            name,
            config,
            folder,
            clock=clock,
            takeover=takeover,
            stop=stop,
            **opening,
        )
        link_run_folder(installation, name, folder)
        if on_open is not None:
            on_open(name, folder)
        if isinstance(opened, AlreadyComplete):
            yield emitter, opened
            return
        yield (
            emitter,
            OwnedTraining(
                name=name,
                folder=folder,
                installation=installation,
                opened=opened,
                emitter=emitter,
                lock=lock,
                clock=clock,
                stop=stop,
            ),
        )
