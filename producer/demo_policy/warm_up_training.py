"""Records the default policy's warm-up as a training of its own (kind sft), when one happens."""

import logging
import secrets
import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from producer.config import RunConfig, recipe
from producer.console import ProgressBar, progress_bar
from producer.emit import Emitter, StreamWriter
from producer.errors import LogBrokenError, StopRequestedError
from producer.resume.open_stream_markers import mark_open
from schemas import ids
from schemas.base import Payload, Progress
from schemas.catalogue import stream
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


class WarmUpTraining:
    """Created with the first progress it hears of and ended when left.

    A policy that is warm already leaves no events.
    """

    def __init__(
        self,
        emitter: Emitter,
        clock: Callable[[], datetime],
        config: RunConfig,
        open_dir: Path,
        stop: threading.Event,
    ) -> None:
        self._emitter = emitter
        self._clock = clock
        self._config = config
        self._open_dir = open_dir
        self._stop = stop
        self._marker = ExitStack()
        self._drawing = ExitStack()
        self._bar = ProgressBar()
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
        activity = "drawing demonstrations" if loss is None else f"loss {loss:.3f}"
        self._bar.advance(done - self._done, activity)
        self._done = done
        percent = 100 * done // total
        if percent // 5 == self._percent // 5 and done < total:
            return
        self._percent = percent
        line = f"warm-up of the default policy: {percent} %, {activity}"
        logger.log(logging.DEBUG if self._bar.is_drawn else logging.INFO, "%s", line)
        writer.emit(
            TrainingProgressed(
                current_phase="training",
                current_step=done,
                progress=Progress(percent=percent),
                status_message=line,
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._drawing.close()
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
        settings = recipe(self._config, Path()).model_copy(
            update={"log_path": None, "lora_rank": None}
        )
        writer.emit(
            TrainingCreated(
                run_name=name,
                kind="sft",
                recipe=settings,
                total_steps=total,
                config={"kind": "behaviour cloning"},
            )
        )
        writer.emit(TrainingInitializing())
        writer.emit(TrainingStarted(current_step=0))
        self._bar = self._drawing.enter_context(
            progress_bar("warming up the default policy", total)
        )
        self._stream, self._total = writer, total
        return writer
