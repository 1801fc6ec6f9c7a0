"""The steps of a supervised training: update, held-out figures, state, events.

Steps are short, so a state is saved every few seconds and not after each: `StepFinished` of the
steps in between waits until the state that has them is on disk. A killed process repeats them, bit
for bit.
"""

import logging
import math
import shutil
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import Final

from producer.console import ProgressBar
from producer.emit import Emitter, StreamWriter
from producer.errors import CuaTrainError, StopRequestedError
from producer.fine_tuning.settings import Every, FineTuningConfig
from producer.fine_tuning.trainee import Trainee
from producer.resume import resume_state
from producer.resume.resume_state import EvaluationSummary, Manifest
from producer.supervised.fit import FitStep
from producer.supervised.held_out import Figures
from producer.training.run_files import RunFiles
from schemas import ids
from schemas.base import Payload, Progress
from schemas.catalogue import stream_owner
from schemas.checkpoint import CheckpointSaved
from schemas.step import StepCreated, StepFinished
from schemas.training import TrainingProgressed

logger = logging.getLogger(__name__)

STATE_EVERY_S: Final = 10.0
"""What a kill may cost, in seconds of training."""
SAVING_SHARE: Final = 0.05
"""Of the time, at most, that saving states may take: large ones are saved less often."""
PROGRESS_EVERY_S: Final = 1.0


def is_saved(config: FineTuningConfig, step: int) -> bool:
    """Whether a checkpoint is kept after `step` (from 1); after the last always."""
    return _is_due(config.save_strategy, config.save_steps, config, step)


def is_evaluated(config: FineTuningConfig, step: int) -> bool:
    """Whether the held-out examples are evaluated after `step` (from 1); after the last always."""
    return _is_due(config.eval_strategy, config.eval_steps, config, step)


def _is_due(every: Every, steps: int, config: FineTuningConfig, step: int) -> bool:
    if step == config.num_steps:
        return True
    return every != "no" and step % (steps if every == "steps" else config.steps_per_epoch) == 0


@dataclass(slots=True)
class FineTuningLoop:
    """One process's share of a supervised training."""

    config: FineTuningConfig
    trainee: Trainee
    stream: StreamWriter
    emitter: Emitter
    run_folder: Path
    manifest: Manifest
    """The newest saved state's; replaced by each."""
    generation: int
    clock: Callable[[], datetime]
    stop: threading.Event
    check_owner: Callable[[], None]
    """Raises TakenOverError once another process continues the training."""
    files: RunFiles
    bar: ProgressBar
    highest_percent: float = 0.0
    """Progress stated before; it never falls."""
    _waiting: list[Payload] = field(default_factory=list)
    """Events of steps that no saved state has yet."""
    _summaries: tuple[EvaluationSummary, ...] = ()
    """Evaluations that no saved state has yet."""
    _saved_s: float = field(default_factory=monotonic)
    _state_every_s: float = STATE_EVERY_S
    _stated_s: float = float("-inf")
    _begun_s: float = field(default_factory=monotonic)

    def run(self) -> Manifest:
        """Bring the training to its end; StopRequestedError leaves nothing undone."""
        first = self.manifest.step
        for step in range(first + 1, self.config.num_steps + 1):
            if self.stop.is_set():
                self._save(step - 1)
                raise StopRequestedError
            self._step(step)
            if step == self.config.num_steps or self._is_state_due(step):
                self._save(step)
            self._state_progress(step, first)
        return self.manifest

    def _step(self, step: int) -> None:
        step_id = ids.step_id(stream_owner(self.stream.subject), self.generation, step)
        began_s = monotonic()
        done = self.trainee.step()
        if not math.isfinite(done.loss):
            message = (
                f"step {step}: the loss is {done.loss}, not a number; lower learning_rate (the"
                f" state before it is kept), or begin another training"
            )
            raise CuaTrainError(message)
        self.stream.ensure(
            StepCreated(
                step_id=step_id,
                generation=self.generation,
                step=step,
                batch=step - 1,
                learning_rate=done.learning_rate,
                model_path=None,
            )
        )
        seconds = monotonic() - began_s
        figures = self.trainee.evaluate() if is_evaluated(self.config, step) else None
        if figures is not None:
            summary = held_out_summary(step, figures)
            self._summaries = (*self._summaries, summary)
            logger.info("step %d/%d: %s", step, self.config.num_steps, describe(figures))
        finished = self._finished(step, done, figures, seconds)
        if is_saved(self.config, step):
            self._waiting.append(self._checkpoint(step, finished))
        self._waiting.append(finished)
        if step % self.config.logging_steps == 0 or step == self.config.num_steps:
            logger.info(
                "step %d/%d: loss %.4f, gradient %.3f, learning rate %.3g",
                *(step, self.config.num_steps, done.loss, done.gradient_norm, done.learning_rate),
            )
        self.bar.advance(1, f"loss {done.loss:.3f}")

    def _finished(
        self, step: int, done: FitStep, figures: Figures | None, seconds: float
    ) -> StepFinished:
        held_out = {} if figures is None else _metrics(figures)
        return StepFinished(
            step_id=ids.step_id(stream_owner(self.stream.subject), self.generation, step),
            training_ended_at=self.clock(),
            loss=done.loss,
            kl_divergence=None,
            policy_gradient_norm=done.gradient_norm,
            reward_mean=None,
            reward_std=None,
            num_trajectories=0,
            num_tokens=0,
            policy_version=step,
            progress=Progress(percent=100.0),
            metrics={
                "optim/lr": done.learning_rate,
                "progress/done_frac": step / self.config.num_steps,
                "train/epoch": done.epoch,
                "train/batch_size": done.num_items,
                "train/num_targets": done.num_targets,
                "time/train": seconds,
                **held_out,
            },
        )

    def _checkpoint(self, step: int, finished: StepFinished) -> CheckpointSaved:
        self.check_owner()
        folder = resume_state.checkpoint_folder(self.run_folder, self.generation, step)
        # What a killed process left of it; the same step has the same bits.
        shutil.rmtree(folder, ignore_errors=True)
        digest = self.trainee.export(folder)
        return CheckpointSaved(
            step_id=finished.step_id,
            generation=self.generation,
            step=step,
            path=str(folder),
            policy_version=step,
            adapter_sha256=digest,
        )

    def _is_state_due(self, step: int) -> bool:
        return is_saved(self.config, step) or monotonic() - self._saved_s >= self._state_every_s

    def _save(self, step: int) -> None:
        """The state on disk, manifest last; then the events that wait for it."""
        if not self._waiting:
            return
        self.check_owner()
        began_s = monotonic()
        folder = resume_state.begin_state(self.run_folder, self.generation, step)
        self.trainee.save_state(folder)
        log = self.emitter.log
        self.manifest = replace(
            self.manifest,
            step=step,
            policy_version=step,
            log_id=log.log_id(),
            since=resume_state.bounds_to_json(log.lower_bounds()),
            evaluations=(*self.manifest.evaluations, *self._summaries),
            pending=tuple(resume_state.pending_to_json(payload) for payload in self._waiting),
            claim_epoch=self.stream.point.epoch,
            claim_source=self.emitter.source,
        )
        # Whoever finds the manifest emits its events: what they refer to must be in the log.
        self.emitter.flush()
        resume_state.commit_state(folder, self.manifest)
        for payload in self._waiting:
            self.stream.emit(payload)
        self.emitter.flush()
        self._write_lines()
        self._waiting, self._summaries = [], ()
        self._drop_others(step)
        self._saved_s = monotonic()
        self._state_every_s = max(STATE_EVERY_S, (self._saved_s - began_s) / SAVING_SHARE)

    def _write_lines(self) -> None:
        number = self.manifest.step - sum(isinstance(item, StepFinished) for item in self._waiting)
        for payload in self._waiting:
            if isinstance(payload, StepFinished):
                number += 1
                self.files.step(number, payload)
            elif isinstance(payload, CheckpointSaved):
                self.files.checkpoint(payload)
        for summary in self._summaries:
            self.files.evaluation(summary)

    def _drop_others(self, step: int) -> None:
        """Keep the newest states, and the newest checkpoints that `save_total_limit` allows."""
        resume_state.drop_old_states(self.run_folder, self.generation, step)
        limit = self.config.save_total_limit
        kept = resume_state.checkpoint_folder(self.run_folder, self.generation, step).parent
        if limit is not None and kept.is_dir():
            for folder in sorted(kept.glob("step-*"))[:-limit]:
                shutil.rmtree(folder, ignore_errors=True)

    def _state_progress(self, step: int, first: int) -> None:
        now_s = monotonic()
        if now_s - self._stated_s < PROGRESS_EVERY_S and step < self.config.num_steps:
            return
        self._stated_s = now_s
        elapsed_s = now_s - self._begun_s
        left_s = elapsed_s / (step - first) * (self.config.num_steps - step)
        self.highest_percent = max(self.highest_percent, 100 * step / self.config.num_steps)
        self.stream.emit(
            TrainingProgressed(
                current_phase="training",
                current_step=self.manifest.step,
                progress=Progress(
                    percent=self.highest_percent,
                    estimated_total_time_s=elapsed_s + left_s,
                    estimated_remaining_time_s=left_s,
                ),
            )
        )


def held_out_summary(step: int, figures: Figures) -> EvaluationSummary:
    """As the manifest keeps it: success is the accuracy over the targets."""
    error = (figures.accuracy * (1 - figures.accuracy) / figures.num_targets) ** 0.5
    return EvaluationSummary(
        label="baseline" if step == 0 else f"eval-{step}",
        step=step,
        success=figures.accuracy,
        standard_error=error,
        episodes=figures.num_targets,
        metrics=_metrics(figures),
    )


def _metrics(figures: Figures) -> dict[str, float]:
    found = asdict(figures)
    return {f"test/{name}": value for name, value in found.items() if value is not None}


def describe(figures: Figures) -> str:
    """The figures for a person."""
    auc = "" if figures.auc is None else f", AUC {figures.auc:.3f}"
    return f"held out: loss {figures.loss:.4f}, accuracy {figures.accuracy:.3f}{auc}"
