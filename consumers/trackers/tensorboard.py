"""TensorBoard: event files in a folder, one folder for each run below it."""

from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]  # no stubs
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.event_file_writer import (  # type: ignore[import-untyped]
    EventFileWriter,
)

from consumers.trackers.tracker import Measurement, Outcome, TrackedRun

LONGEST_NAME = 200
"""Bytes; file systems take 255."""


class TensorboardTracker:
    """Writes scalars as `simple_value`, which every reader knows.

    `tensorboard.summary.Writer` writes tensors, which `EventAccumulator.Scalars()` does not see.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writers: dict[str, EventFileWriter] = {}

    def begin(self, run: TrackedRun) -> None:
        """Open a file of its own: TensorBoard reads all files of a folder as one run."""
        if run.key not in self._writers:
            self._writers[run.key] = EventFileWriter(str(self._folder / _folder_name(run)))

    def log(self, run: TrackedRun, measurement: Measurement) -> None:
        """One scalar for each metric, at the measurement's step and time."""
        writer = self._writers[run.key]
        values = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in sorted(measurement.metrics.items())
        ]
        writer.add_event(
            Event(
                wall_time=measurement.time.timestamp(),
                step=measurement.step,
                summary=Summary(value=values),
            )
        )
        writer.flush()

    def end(self, run: TrackedRun, outcome: Outcome, message: str | None) -> None:
        """TensorBoard knows no outcomes; only the file is closed."""
        del outcome, message
        writer = self._writers.pop(run.key, None)
        if writer is not None:
            writer.close()

    def close(self) -> None:
        """Close every file."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()


def _folder_name(run: TrackedRun) -> str:
    """The training's name, where that names a folder here; in the log it may be any text."""
    name = run.training_name
    if "/" in name or "\0" in name or name in {"", ".", ".."} or len(name.encode()) > LONGEST_NAME:
        name = run.training_id.hex
    return name if run.generation == 0 else f"{name}@{run.generation}"
