"""Records the default policy's warm-up as a training of its own (kind sft), when one happens.

The run that needs the policy meanwhile records what it waits for, on its own stream.
"""

import logging
import secrets
import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from producer.agents.built_policy import WarmUpPlan
from producer.console import ProgressBar, progress_bar
from producer.emit import Emitter, StreamWriter
from producer.emit.heartbeat import HEARTBEAT_S, heartbeat
from producer.errors import LogBrokenError, StopRequestedError
from producer.resume.open_stream_markers import mark_open
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


class WarmUpTraining:
    """Created with the first progress it hears of and ended when left.

    A policy that is warm already leaves no events, nor does one that another process makes.
    """

    def __init__(
        self,
        emitter: Emitter,
        clock: Callable[[], datetime],
        open_dir: Path,
        stop: threading.Event,
        *,
        plan: WarmUpPlan,
        waiting: StreamWriter | None = None,
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        """`waiting`: the stream of the training that needs the policy; None: an evaluation."""
        self._emitter = emitter
        self._clock = clock
        self._open_dir = open_dir
        self._stop = stop
        self._waiting = waiting
        self._plan = plan
        self._marker = ExitStack()
        self._alive = ExitStack()
        """The progress bar and the heartbeat."""
        self._heartbeat_s = heartbeat_s
        self._bar: ProgressBar | None = None
        self._stream: StreamWriter | None = None
        self._total = 0
        self._done = 0
        self._percent = -1

    def on_progress(self, policy: str, done: int, total: int, loss: float | None) -> None:
        """`done` of `total` optimiser steps of `policy`; loss None: drawing demonstrations.

        StopRequestedError after a stop was requested.
        """
        writer = self._stream or self._begin(policy, total)
        if self._stop.is_set():
            raise StopRequestedError
        if loss is not None:
            self._record_step(writer, done, loss)
        line = self._say("warm-up of the default policy", done, total, loss)
        if line is not None:
            writer.emit(
                TrainingProgressed(
                    current_phase="training",
                    current_step=done,
                    progress=Progress(percent=100 * done / total),
                    status_message=line,
                )
            )

    def on_wait(self, holder: str, done: int, total: int, loss: float | None) -> None:
        """`holder`, another process of this home, makes the policy. StopRequestedError."""
        if self._stop.is_set():
            raise StopRequestedError
        self._say(f"waiting for {holder}, which warms up the default policy", done, total, loss)

    def _say(self, what: str, done: int, total: int, loss: float | None) -> str | None:
        """Show the progress; the line that was said, None within the same five percent."""
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
        line = f"{what}: {percent} %, {activity}"
        logger.log(logging.DEBUG if self._bar.is_drawn else logging.INFO, "%s", line)
        if self._waiting is not None:
            self._waiting.emit(TrainingInitializing(status_message=line))
        return line

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
            return  # with a broken log the marker stays
        with self._marker:
            self._stream.emit(self._ending(exc))
            self._stream.close()

    def _ending(self, exc: BaseException | None) -> Payload:
        now = self._clock()
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
        writer = self._emitter.stream(stream("training", ids.training_id(name)))
        self._marker.enter_context(mark_open(self._open_dir, writer.subject, self._emitter))
        writer.emit(
            TrainingCreated(
                run_name=name,
                kind="sft",
                recipe=self._plan.recipe(policy),
                total_steps=total,
                config={"kind": "behaviour cloning", "recipe": dict(self._plan.settings)},
            )
        )
        writer.emit(TrainingInitializing())
        writer.emit(TrainingStarted(current_step=0))
        # Drawing demonstrations takes minutes on a busy machine, without any other event.
        self._alive.enter_context(heartbeat(writer, every_s=self._heartbeat_s))
        self._stream, self._total = writer, total
        return writer

    def _record_step(self, writer: StreamWriter, done: int, loss: float) -> None:
        step_id = ids.step_id(stream_owner(writer.subject), 0, done)
        step = self._plan.steps[done - 1]
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
                training_ended_at=self._clock(),
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
