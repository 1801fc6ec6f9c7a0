"""Puts the default policy's warm-up into the log as a training of its own (kind sft), when one happens at all."""

import secrets
import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType

from producer.config import RunConfig, recipe
from producer.emit import Emitter
from producer.emit.speaker import StreamSpeaker
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


class WarmUpFacts:
    """Begins its training with the first progress it hears of and states its end when left.

    One that found a warm policy says nothing.
    """

    def __init__(
        self,
        emitter: Emitter,
        clock: Callable[[], datetime],
        config: RunConfig,
        open_dir: Path,
        stop: threading.Event,
        report: Callable[[str], None],
    ) -> None:
        self._emitter = emitter
        self._clock = clock
        self._config = config
        self._open_dir = open_dir
        self._stop = stop
        self._report = report
        self._mark = ExitStack()
        self._speaker: StreamSpeaker | None = None
        self._total = 0
        self._percent = -1

    def on_progress(self, policy: str, done: int, total: int, loss: float | None) -> None:
        """`done` of `total` optimiser steps of making `policy`; loss None: still drawing.

        StopRequestedError when the run is to stop.
        """
        speaker = self._speaker or self._begin(policy, total)
        if self._stop.is_set():
            raise StopRequestedError
        percent = 100 * done // total
        if percent // 5 == self._percent // 5 and done < total:
            return
        self._percent = percent
        line = f"warm-up of the default policy: {percent} %" + (
            ", drawing demonstrations" if loss is None else f", loss {loss:.3f}"
        )
        self._report(line)
        speaker.say(
            TrainingProgressed(
                current_phase="training",
                current_step=done,
                progress=Progress(percent=percent),
                status_message=line,
            )
        )

    def __enter__(self) -> "WarmUpFacts":
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._speaker is None or isinstance(exc, LogBrokenError):
            return
        with self._mark:
            self._speaker.say(self._end(exc))
            self._emitter.forget_stream(self._speaker.subject)

    def _end(self, exc: BaseException | None) -> Payload:
        if exc is None:
            return TrainingCompleted(
                current_step=self._total, progress=Progress(percent=100.0), ended_at=self._clock()
            )
        if isinstance(exc, StopRequestedError):
            return TrainingCancelled(status_message="stopped on request", ended_at=self._clock())
        return TrainingFailed(
            error_message=f"{type(exc).__name__}: {exc}"[:2000], ended_at=self._clock()
        )

    def _begin(self, policy: str, total: int) -> StreamSpeaker:
        # The policy's name hashes its recipe; the suffix keeps two homes on one log apart, and a
        # second attempt from the first.
        name = f"warm-up-{policy}-{secrets.token_hex(4)}"
        training_id = ids.training_id(name)
        speaker = StreamSpeaker(stream("training", training_id), training_id, self._emitter)
        self._mark.enter_context(mark_open(self._open_dir, speaker.subject, self._emitter))
        settings = recipe(self._config, Path()).model_copy(
            update={"log_path": None, "lora_rank": None}
        )
        speaker.say(
            TrainingCreated(
                run_name=name,
                kind="sft",
                recipe=settings,
                total_steps=total,
                config={"kind": "behaviour cloning"},
            )
        )
        speaker.say(TrainingInitializing())
        speaker.say(TrainingStarted(current_step=0))
        self._speaker, self._total = speaker, total
        return speaker
