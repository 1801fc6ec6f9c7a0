"""States how far the training is, at most once a second. The figures are `progress`'s."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

from producer.emit import StreamWriter
from producer.training.progress import ProgressTracker
from schemas.catalogue import stream_kind
from schemas.training import Phase, TrainingProgressed

EVERY_S = 1.0


@dataclass(slots=True)
class ProgressEvents:
    """Progress of one process's share of a training. Thread-safe."""

    stream: StreamWriter
    """The training's, or that of an evaluation by hand (then no training progress is emitted)."""
    tracker: ProgressTracker
    current_step: int = 0
    phase: Phase = "initialization"
    _begun_s: float = field(default_factory=monotonic)
    _emitted_s: float = float("-inf")
    _lock: threading.RLock = field(default_factory=threading.RLock)
    """A figure is emitted before a higher one is computed."""

    def throttled(self, emit_part: Callable[[], None]) -> None:
        """Emit progress of a part, then of the training; nothing within a second of the last."""
        with self._lock:
            now_s = monotonic()
            if now_s - self._emitted_s >= EVERY_S:
                self._emitted_s = now_s
                self.update_elapsed()
                emit_part()
                self.emit()

    def emit(self) -> None:
        """Emit the training's progress now."""
        if stream_kind(self.stream.subject) != "training":
            return
        with self._lock:
            self.stream.emit(
                TrainingProgressed(
                    current_phase=self.phase,
                    current_step=self.current_step,
                    progress=self.tracker.of_all(),
                )
            )

    def update_elapsed(self) -> None:
        """Let the tracker know how long this process has run."""
        self.tracker.elapsed_s = monotonic() - self._begun_s
