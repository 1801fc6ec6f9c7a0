"""The loop of a supervised training: update, held-out evaluation, saved state, events.

Steps are short, so a state is saved every few seconds rather than after each step. The
`StepFinished` events of the steps in between wait until the state that contains them is on disk.
After a kill, the next process repeats those steps, bit for bit.
"""

import logging
import math
import shutil
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Final
from uuid import UUID

from producer.console import ProgressBar
from producer.errors import CuaTrainError, StopRequestedError
from producer.fine_tuning.settings import Every, FineTuningConfig
from producer.fine_tuning.trainee import Trainee
from producer.resume import resume_state
from producer.resume.resume_state import EvaluationSummary
from producer.supervised.fit import FitStep
from producer.supervised.held_out import Figures
from producer.training.lifecycle import OwnedTraining
from schemas import ids
from schemas.base import Payload, Progress
from schemas.catalogue import stream_owner
from schemas.checkpoint import CheckpointSaved
from schemas.step import StepCreated, StepFinished
from schemas.training import TrainingProgressed

logger = logging.getLogger(__name__)

STATE_EVERY_S: Final = 10.0
"""How much training time a kill may cost at most."""
SAVING_SHARE: Final = 0.05
"""Maximum share of the time spent on saving states; large states are saved less often."""
PROGRESS_EVERY_S: Final = 1.0


def is_saved(config: FineTuningConfig, step: int) -> bool:
    """Whether a checkpoint is kept after `step`, which counts from 1.

    Always kept after the last.
    """
    return _is_due(config.save_strategy, config.save_steps, config, step)


def is_evaluated(config: FineTuningConfig, step: int) -> bool:
    """Whether held-out examples are evaluated after `step`, which counts from 1.

    Always evaluated after the last step.
    """
    return _is_due(config.eval_strategy, config.eval_steps, config, step)


def _is_due(every: Every, steps: int, config: FineTuningConfig, step: int) -> bool:
    if step == config.num_steps:
        return True
    return every != "no" and step % (steps if every == "steps" else config.steps_per_epoch) == 0


@dataclass(slots=True)
class FineTuningLoop:
    """One process's part of a supervised training."""

    owned: OwnedTraining[FineTuningConfig]
    trainee: Trainee
    bar: ProgressBar
    _waiting: list[Payload] = field(default_factory=list)
    """Events of steps that no saved state contains yet."""
    _summaries: tuple[EvaluationSummary, ...] = ()
    """Evaluations that no saved state contains yet."""
    _saved_s: float = field(default_factory=monotonic)
    _state_every_s: float = STATE_EVERY_S
    _stated_s: float = float("-inf")
    _begun_s: float = field(default_factory=monotonic)

    @property
    def config(self) -> FineTuningConfig:
        """The training's configuration."""
        return self.owned.config

    def run(self) -> None:
        """Train to the end. If stopped by StopRequestedError, all finished work has been saved."""
        first = self.owned.manifest.step
        for step in range(first + 1, self.config.num_steps + 1):
            if self.owned.stop.is_set():
                self._save(step - 1)
                raise StopRequestedError
            self._step(step)
            if step == self.config.num_steps or self._is_state_due(step):
                self._save(step)
            self._state_progress(step, first)

    def _step(self, step: int) -> None:
        began_s = monotonic()
        done = self.trainee.step()
        if not math.isfinite(done.loss):
            message = (
                f"step {step}: the loss is {done.loss}, not a number; lower learning_rate (the"
                f" state before it is kept), or begin another training"
            )
            raise CuaTrainError(message)
        self.owned.stream.ensure(
            StepCreated(
                step_id=self._step_id(step),
                generation=self.owned.generation,
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
            step_id=self._step_id(step),
            training_ended_at=self.owned.clock(),
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

    def _step_id(self, step: int) -> UUID:
        return ids.step_id(stream_owner(self.owned.stream.subject), self.owned.generation, step)

    def _checkpoint(self, step: int, finished: StepFinished) -> CheckpointSaved:
        owned = self.owned
        owned.lock.check()
        folder = resume_state.checkpoint_folder(owned.folder, owned.generation, step)
        # A killed process may have left part of it; repeating the step gives the same bits.
        shutil.rmtree(folder, ignore_errors=True)
        digest = self.trainee.export(folder)
        return CheckpointSaved(
            step_id=finished.step_id,
            generation=owned.generation,
            step=step,
            path=str(folder),
            policy_version=step,
            adapter_sha256=digest,
        )

    def _is_state_due(self, step: int) -> bool:
        return is_saved(self.config, step) or monotonic() - self._saved_s >= self._state_every_s

    def _save(self, step: int) -> None:
        """Save the state, manifest last, and then emit the events that wait for it."""
        if not self._waiting:
            return
        began_s = monotonic()
        self.owned.save_step(self.trainee.fit, step, self._waiting, summaries=self._summaries)
        self._waiting, self._summaries = [], ()
        self._drop_checkpoints(step)
        self._saved_s = monotonic()
        self._state_every_s = max(STATE_EVERY_S, (self._saved_s - began_s) / SAVING_SHARE)

    def _drop_checkpoints(self, step: int) -> None:
        """Delete all but the newest checkpoints that `save_total_limit` allows."""
        owned, limit = self.owned, self.config.save_total_limit
        kept = resume_state.checkpoint_folder(owned.folder, owned.generation, step).parent
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
        self.owned.stream.emit(
            TrainingProgressed(
                current_phase="training",
                current_step=self.owned.manifest.step,
                progress=Progress(
                    percent=100 * step / self.config.num_steps,
                    estimated_total_time_s=elapsed_s + left_s,
                    estimated_remaining_time_s=left_s,
                ),
            )
        )


def held_out_summary(step: int, figures: Figures) -> EvaluationSummary:
    """The summary for the manifest, in which success is the accuracy over the targets."""
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
    """Format the figures for people."""
    auc = "" if figures.auc is None else f", AUC {figures.auc:.3f}"
    return f"held out: loss {figures.loss:.4f}, accuracy {figures.accuracy:.3f}{auc}"
