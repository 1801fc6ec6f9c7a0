"""Puts the default policy's warm-up into the log as a training of its own (kind sft), when one happens at all."""

import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from producer.config import RunConfig
from producer.emit import Emitter
from producer.training.opening import recipe
from producer.training.session import StopRequestedError, StreamSpeaker
from schemas import ids
from schemas.base import Progress
from schemas.catalogue import stream
from schemas.training import (
    TrainingCancelled,
    TrainingCompleted,
    TrainingCreated,
    TrainingInitializing,
    TrainingProgressed,
    TrainingStarted,
)


class WarmUpFacts:
    """Begins its training with the first progress it hears of; one that found a warm policy says nothing."""

    def __init__(
        self, emitter: Emitter, clock: Callable[[], datetime], config: RunConfig, stop: threading.Event, report: Callable[[str], None]
    ) -> None:
        self._emitter = emitter
        self._clock = clock
        self._config = config
        self._stop = stop
        self._report = report
        self._speaker: StreamSpeaker | None = None
        self._total = 0
        self._percent = -1

    def on_progress(self, done: int, total: int, loss: float) -> None:
        """One optimiser step; StopRequestedError when the run is to stop."""
        speaker = self._speaker or self._begin(total)
        if self._stop.is_set():
            speaker.say(TrainingCancelled(status_message="stopped on request", ended_at=self._clock()))
            raise StopRequestedError
        percent = 100 * done // total
        if percent // 5 == self._percent // 5 and done < total:
            return
        self._percent = percent
        line = f"warm-up of the default policy: {percent} %, loss {loss:.3f}"
        self._report(line)
        speaker.say(
            TrainingProgressed(current_phase="training", current_step=done, progress=Progress(percent=percent), status_message=line)
        )

    def finish(self) -> None:
        """The policy is there."""
        if self._speaker is not None:
            self._speaker.say(TrainingCompleted(current_step=self._total, progress=Progress(percent=100.0), ended_at=self._clock()))
            self._emitter.flush()
            self._emitter.forget_stream(self._speaker.subject)

    def _begin(self, total: int) -> StreamSpeaker:
        # The moment in the name keeps two homes on one log apart; the policy itself is named by its recipe.
        name = f"warm-up-{self._clock():%Y%m%d-%H%M%S}-{self._emitter.source.rpartition('-')[2]}"
        training_id = ids.training_id(name)
        speaker = StreamSpeaker(stream("training", training_id), training_id, self._emitter)
        settings = recipe(self._config, Path()).model_copy(update={"log_path": None, "lora_rank": None})
        speaker.say(TrainingCreated(run_name=name, kind="sft", recipe=settings, total_steps=total, config={"kind": "behaviour cloning"}))
        speaker.say(TrainingInitializing())
        speaker.say(TrainingStarted(current_step=0))
        self._speaker, self._total = speaker, total
        return speaker
