"""Records the default policy's warm-up, when one happens, as its own training of kind sft.

Meanwhile the run that needs the policy records on its own stream what it waits for.
"""

import logging
import secrets
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from producer.agents.built_policy import WarmUpPlan
from producer.console import ProgressBar, progress_bar
from producer.emit import Emitter, StreamWriter
from producer.emit.heartbeat import HEARTBEAT_S, heartbeat
from producer.errors import LogBrokenError, StopRequestedError
from producer.resume.orphans import mark_open
from schemas import ids
from schemas.base import Payload, Progress
from schemas.catalogue import stream, stream_owner
from schemas.step import StepCreated, StepFinished
from schemas.training import (
    TrainingCancelled,
    TrainingCompleted,
    TrainingCreated,
    TrainingFailed,
    TrainingInitializing,
    TrainingProgressed,
    TrainingStarted,
)

logger = logging.getLogger(__name__)

EVERY_PERCENT = 5


@dataclass(slots=True)
class WarmUpTraining:
    """Created with the first progress reported, and ended when the context is left.

    Nothing is recorded if the policy already exists or another process makes it.
    """

    emitter: Emitter
    clock: Callable[[], datetime]
    open_dir: Path
    stop: threading.Event
    plan: WarmUpPlan = field(kw_only=True)
    waiting: StreamWriter | None = field(default=None, kw_only=True)
    """The stream of the training that needs the policy; None for an evaluation."""
    heartbeat_s: float = field(default=HEARTBEAT_S, kw_only=True)
    _marker: ExitStack = field(init=False, default_factory=ExitStack)
    _alive: ExitStack = field(init=False, default_factory=ExitStack)
    """Holds the progress bar and the heartbeat."""
    _bar: ProgressBar | None = field(init=False, default=None)
    _stream: StreamWriter | None = field(init=False, default=None)
    _total: int = field(init=False, default=0)
    _done: int = field(init=False, default=0)
    _percent: int = field(init=False, default=-1)
    _waits: bool = field(init=False, default=False)

    def on_progress(self, policy: str, done: int, total: int, loss: float | None) -> None:
        """Record that `done` of `total` optimiser steps of `policy` are done.

        `loss` is None while demonstrations are being generated. Raises StopRequestedError after a
        stop was requested.
        """
        writer = self._stream or self._begin(policy, total)
        if self.stop.is_set():
            raise StopRequestedError
        if loss is not None:
            self._record_step(writer, done, loss)
        line = self._say(done, total, loss)
        if line is not None:
            writer.emit(
                TrainingProgressed(
                    current_phase="training",
                    current_step=done,
                    progress=Progress(percent=100 * done / total),
                    status_message=line,
                )
            )

    def on_wait(self, holder: str) -> None:
        """Say once that this process waits for `holder`, which makes the policy.

        Raises StopRequestedError after a stop was requested.
        """
        if self.stop.is_set():
            raise StopRequestedError
        if not self._waits:
            self._waits = True
            line = f"waiting for {holder}, which warms up the default policy"
            logger.info("%s", line)
            self._tell_waiting(line)

    def _say(self, done: int, total: int, loss: float | None) -> str | None:
        """Show the progress. Returns the line logged, or None within the same five percent."""
        if self._bar is None:
            self._bar = self._alive.enter_context(
                progress_bar("warming up the default policy", total)
            )
        activity = "drawing demonstrations" if loss is None else f"loss {loss:.3f}"
        self._bar.advance(done - self._done, activity)
        self._done = done
        percent = 100 * done // total
        if percent // EVERY_PERCENT == self._percent // EVERY_PERCENT and done < total:
            return None
        self._percent = percent
        line = f"warm-up of the default policy: {percent} %, {activity}"
        logger.log(logging.DEBUG if self._bar.is_drawn else logging.INFO, "%s", line)
        self._tell_waiting(line)
        return line

    def _tell_waiting(self, line: str) -> None:
        if self.waiting is not None:
            self.waiting.emit(TrainingInitializing(status_message=line))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._alive.close()
        if self._stream is None or isinstance(exc, LogBrokenError):
            return  # with a broken log the marker is kept
        with self._marker:
            self._stream.emit(self._ending(exc))
            self._stream.close()

    def _ending(self, exc: BaseException | None) -> Payload:
        now = self.clock()
        if exc is None:
            done = Progress(percent=100.0)
            return TrainingCompleted(current_step=self._total, progress=done, ended_at=now)
        if isinstance(exc, StopRequestedError):
            return TrainingCancelled(status_message="stopped on request", ended_at=now)
        message = f"{type(exc).__name__}: {exc}"[:2000]
        return TrainingFailed(error_message=message, ended_at=now)

    def _begin(self, policy: str, total: int) -> StreamWriter:
        # The policy's name hashes its recipe. The suffix keeps apart two homes that share a log,
        # and a second attempt from the first.
        name = f"warm-up-{policy}-{secrets.token_hex(4)}"
        writer = self.emitter.stream(stream("training", ids.training_id(name)))
        self._marker.enter_context(mark_open(self.open_dir, writer.subject, self.emitter))
        writer.emit(
            TrainingCreated(
                run_name=name,
                kind="sft",
                recipe=self.plan.recipe(policy),
                total_steps=total,
                config={"kind": "behaviour cloning", "recipe": dict(self.plan.settings)},
            )
        )
        writer.emit(TrainingInitializing())
        writer.emit(TrainingStarted(current_step=0))
        # Generating demonstrations takes minutes on a busy machine, without any other event.
        self._alive.enter_context(heartbeat(writer, every_s=self.heartbeat_s))
        self._stream, self._total = writer, total
        return writer

    def _record_step(self, writer: StreamWriter, done: int, loss: float) -> None:
        step_id = ids.step_id(stream_owner(writer.subject), 0, done)
        step = self.plan.steps[done - 1]
        writer.emit(
            StepCreated(
                step_id=step_id,
                generation=0,
                step=done,
                batch=done - 1,
                learning_rate=step.learning_rate,
                model_path=None,
            )
        )
        writer.emit(
            StepFinished(
                step_id=step_id,
                training_ended_at=self.clock(),
                loss=loss,
                kl_divergence=None,
                policy_gradient_norm=None,
                reward_mean=None,
                reward_std=None,
                num_trajectories=0,
                num_tokens=0,
                policy_version=done,
                progress=Progress(percent=100.0),
                metrics={
                    "optim/lr": step.learning_rate,
                    "progress/done_frac": done / self._total,
                    "train/stage": step.stage,
                    "train/batch_size": step.batch_size,
                },
            )
        )
